"""`tools/dev emulate`: a command on CUDA devices that exist on the host alone."""

from __future__ import annotations

import os
import pathlib
import subprocess
import zlib
from collections.abc import Sequence

from devtool import cmake
from devtool.shell import ROOT, Failure, run

SOURCES = ROOT / "test" / "emulator"
_TABLES = ("driver", "cublaslt", "cublas", "cudnn", "cufft", "cusolver")
DEVICE_TEXT = ROOT / "test" / "python" / "cuda"


def library() -> pathlib.Path:
    """The emulator, built where it is missing or older than its sources."""
    tree = cmake.build_dir()
    made = tree / "emulator" / "libemulated_cuda.so"
    sources = sorted(SOURCES.glob("*.cpp"))
    headers = sorted([*SOURCES.glob("*.h"), *DEVICE_TEXT.glob("host_*.h")])
    tables = [ROOT / "c10" / "cuda" / f"{name}.h" for name in _TABLES]
    inputs = [*sources, *headers, *tables]
    newest = max(path.stat().st_mtime for path in inputs)
    if made.exists() and made.stat().st_mtime > newest:
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra"]
    flags += ["-Wno-unused-parameter", f"-I{tree / 'include'}"]
    flags += [f'-DEMULATOR_INCLUDE="{DEVICE_TEXT}"', f'-DEMULATOR_SOURCES="{SOURCES}"']
    # Kept programs are of the text that surrounded them.
    version = zlib.crc32(b"".join(path.read_bytes() for path in inputs)) >> 1
    flags += [f"-DEMULATOR_VERSION={version}"]
    beside = made.with_suffix(f".{os.getpid()}.so")
    compiler = os.environ.get("CXX", "c++")
    # LAPACK is the one that libtaeda.so opens.
    beneath = [f"-L{tree / 'lib'}", "-ltaeda", f"-Wl,-rpath,{tree / 'lib'}"]
    run([compiler, *flags, *map(str, sources), "-o", str(beside), "-ldl", *beneath])
    beside.replace(made)
    return made


def environment() -> dict[str, str]:
    """Variables by which a process finds the emulated devices."""
    path = str(library())
    # Programs of the emulator are no programs of a GPU. As ccache's objects they serve
    # every checkout: their names have all that they are made from.
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    cache = pathlib.Path(caches) / "taeda-emulator"
    inherited = os.environ.get("PYTHONPATH")
    places = [str(ROOT / "python"), *([inherited] if inherited else [])]
    return {
        "PYTHONPATH": os.pathsep.join(places),
        "TAEDA_CUDA_DRIVER": path,
        "TAEDA_CUDA_NVRTC": path,
        "TAEDA_CUDA_CUBLASLT": path,
        "TAEDA_CUDA_CUDNN": path,
        "TAEDA_CUDA_CUBLAS": path,
        "TAEDA_CUDA_CUFFT": path,
        "TAEDA_CUDA_CUSOLVER": path,
        "TAEDA_NCCL_LIBRARY": path,
        "TAEDA_CACHE_DIR": os.environ.get("TAEDA_CACHE_DIR", str(cache)),
    }


def main(command: Sequence[str]) -> int:
    """Runs a command on the emulated devices; its exit status."""
    if not command:
        raise Failure("emulate: expected a command")
    return subprocess.run(command, env=os.environ | environment()).returncode
