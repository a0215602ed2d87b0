"""Facts about the machine and the build, by the names that test suites know."""

from __future__ import annotations

import os
import platform
import sys
from importlib.util import find_spec

import taeda

__all__ = [
    "GRADCHECK_NONDET_TOL",
    "IS_ARM64",
    "IS_CI",
    "IS_FBCODE",
    "IS_JETSON",
    "IS_LINUX",
    "IS_MACOS",
    "IS_PPC",
    "IS_REMOTE_GPU",
    "IS_S390X",
    "IS_SANDCASTLE",
    "IS_WINDOWS",
    "IS_X86",
    "NATIVE_DEVICES",
    "NOTEST_CPU",
    "SEED",
    "TEST_ACCELERATOR",
    "TEST_CUDA",
    "TEST_DILL",
    "TEST_HPU",
    "TEST_LIBROSA",
    "TEST_MKL",
    "TEST_MPS",
    "TEST_MULTIGPU",
    "TEST_NUMBA",
    "TEST_NUMPY",
    "TEST_ONEDNN",
    "TEST_OPT_EINSUM",
    "TEST_SCIPY",
    "TEST_SKIP_FAST",
    "TEST_TRANSFORMERS",
    "TEST_WITH_ASAN",
    "TEST_WITH_CROSSREF",
    "TEST_WITH_MTIA",
    "TEST_WITH_ROCM",
    "TEST_WITH_SLOW",
    "TEST_WITH_SLOW_GRADCHECK",
    "TEST_WITH_TORCHDYNAMO",
    "TEST_WITH_TORCHINDUCTOR",
    "TEST_WITH_TSAN",
    "TEST_WITH_UBSAN",
    "TEST_XPU",
    "TEST_Z3",
]


def _asked(variable: str) -> bool:
    return os.environ.get(variable, "0") == "1"


def _installed(module: str) -> bool:
    return find_spec(module) is not None


SEED = 1234
NATIVE_DEVICES = ("cpu", "cuda", "xpu", "meta", "mps", "mtia")
IS_LINUX = sys.platform == "linux"
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
_machine = platform.machine()
IS_X86 = _machine in ("x86_64", "i386")
IS_ARM64 = _machine in ("arm64", "aarch64")
IS_PPC = _machine == "ppc64le"
IS_S390X = _machine == "s390x"
IS_CI = bool(os.environ.get("CI"))
# Names of one company's machines, on which nobody runs this library.
IS_FBCODE = IS_SANDCASTLE = IS_REMOTE_GPU = IS_JETSON = False

TEST_NUMPY, TEST_SCIPY, TEST_NUMBA = map(_installed, ("numpy", "scipy", "numba"))
TEST_DILL, TEST_LIBROSA, TEST_Z3 = map(_installed, ("dill", "librosa", "z3"))
TEST_OPT_EINSUM, TEST_TRANSFORMERS = map(_installed, ("opt_einsum", "transformers"))
TEST_MKL = taeda.backends.mkl.is_available()
TEST_ONEDNN = taeda.backends.mkldnn.is_available()
TEST_CUDA = taeda.cuda.is_available()
TEST_MULTIGPU = TEST_CUDA and taeda.cuda.device_count() > 1
TEST_MPS, TEST_XPU = taeda.mps.is_available(), taeda.xpu.is_available()
TEST_HPU = False
TEST_ACCELERATOR = taeda.accelerator.is_available()
NOTEST_CPU = "cpu" in os.environ.get("PYTORCH_TESTING_DEVICE_EXCEPT_FOR", "").split(",")

TEST_WITH_SLOW = _asked("PYTORCH_TEST_WITH_SLOW")
TEST_SKIP_FAST = _asked("PYTORCH_TEST_SKIP_FAST")
TEST_WITH_SLOW_GRADCHECK = _asked("PYTORCH_TEST_WITH_SLOW_GRADCHECK")
TEST_WITH_CROSSREF = _asked("PYTORCH_TEST_WITH_CROSSREF")
TEST_WITH_ASAN = _asked("PYTORCH_TEST_WITH_ASAN")
TEST_WITH_TSAN = _asked("PYTORCH_TEST_WITH_TSAN")
TEST_WITH_UBSAN = _asked("PYTORCH_TEST_WITH_UBSAN")
# Builds and ways of running that this library does not have.
TEST_WITH_ROCM = TEST_WITH_MTIA = False
TEST_WITH_TORCHDYNAMO = TEST_WITH_TORCHINDUCTOR = False
GRADCHECK_NONDET_TOL = 0.0
