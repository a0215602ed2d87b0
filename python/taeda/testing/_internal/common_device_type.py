"""A class of tests for each kind of device, and a test for each dtype."""

from __future__ import annotations

import inspect
import os
import unittest
from functools import partial, wraps
from typing import NamedTuple

import taeda

from ._environment import NATIVE_DEVICES, TEST_CUDA, TEST_MKL, TEST_ONEDNN
from ._parametrize import place, variants
from ._test_case import TestCase

__all__ = [
    "CPUTestBase",
    "CUDATestBase",
    "DeviceTypeTestBase",
    "deviceCountAtLeast",
    "disableMkldnn",
    "disablecuDNN",
    "dtypes",
    "dtypesIfCPU",
    "dtypesIfCUDA",
    "dtypesIfMPS",
    "dtypesIfXPU",
    "expectedFailure",
    "expectedFailureCPU",
    "expectedFailureCUDA",
    "expectedFailureMPS",
    "expectedFailureMeta",
    "expectedFailureXLA",
    "expectedFailureXPU",
    "get_all_device_types",
    "get_desired_device_type_test_bases",
    "get_device_type_test_bases",
    "instantiate_device_type_tests",
    "largeTensorTest",
    "onlyAccelerator",
    "onlyCPU",
    "onlyCUDA",
    "onlyMPS",
    "onlyNativeDeviceTypes",
    "onlyNativeDeviceTypesAnd",
    "onlyOn",
    "onlyXPU",
    "precisionOverride",
    "skipCPUIf",
    "skipCPUIfNoFFT",
    "skipCPUIfNoLapack",
    "skipCPUIfNoMkl",
    "skipCPUIfNoMkldnn",
    "skipCUDAIf",
    "skipCUDAIfNoCudnn",
    "skipCUDAIfNoCusolver",
    "skipCUDAIfNoMagma",
    "skipCUDAIfNoMagmaAndNoCusolver",
    "skipCUDAIfRocm",
    "skipIf",
    "skipLazy",
    "skipLazyIf",
    "skipMPS",
    "skipMPSIf",
    "skipMeta",
    "skipMetaIf",
    "skipXLA",
    "skipXLAIf",
    "skipXPU",
    "skipXPUIf",
    "tol",
    "toleranceOverride",
]


# Classes of tests -----------------------------------------------------------------


class DeviceTypeTestBase(TestCase):
    """Base class of tests on one kind of device, `device_type`."""

    device_type: str = "generic_device_type"

    @classmethod
    def get_primary_device(cls) -> str:
        """The device that tests get as `device`."""
        return cls.device_type

    @classmethod
    def get_all_devices(cls) -> list[str]:
        """All devices of the kind, the first one that tests get before the others."""
        return [cls.get_primary_device()]

    @classmethod
    def _get_dtypes(cls, test):
        by_device = getattr(test, "dtypes", {})
        return by_device.get(cls.device_type, by_device.get("all"))

    @classmethod
    def instantiate_test(cls, name: str, test, *, generic_cls=None) -> None:
        """Give this class the tests that a method of the generic class stands for."""
        wanted = cls._get_dtypes(test)
        for made, suffix, named in variants(test, generic_cls, cls):
            for dtype in (None,) if wanted is None else wanted:
                cls._add_test(name, made, suffix, {**named, **_as_argument(dtype)})

    @classmethod
    def _add_test(cls, name: str, test, suffix: str, named: dict) -> None:
        parameters = inspect.signature(test).parameters
        if hasattr(test, "num_required_devices"):
            named["devices"] = cls.get_all_devices()
        elif "device" in parameters:
            named["device"] = cls.get_primary_device()
        given = named.get("dtypes") or [named["dtype"]] if _has_dtype(named) else []
        ends = [name, suffix, cls.device_type, *(_name(d) for d in given)]
        place(cls, "_".join(e for e in ends if e), _with_precision(test, given), named)


def _has_dtype(named: dict) -> bool:
    return "dtype" in named or "dtypes" in named


def _as_argument(dtype) -> dict:
    if dtype is None:
        return {}
    return {"dtypes" if isinstance(dtype, (list, tuple)) else "dtype": dtype}


def _name(dtype) -> str:
    return str(dtype).rpartition(".")[2]


def _with_precision(test, given):
    """The test with the tolerances that its decorators name for the dtypes."""

    @wraps(test)
    def run(self, *args, **kwargs):
        before = self.precision, self.rel_tol
        precisions = getattr(test, "precision_overrides", {})
        tolerances = getattr(test, "tolerance_overrides", {})
        for dtype in given:
            self.precision = max(self.precision, precisions.get(dtype, 0))
        for dtype in given:
            if dtype in tolerances:
                self.precision, self.rel_tol = tolerances[dtype]
        try:
            return test(self, *args, **kwargs)
        finally:
            self.precision, self.rel_tol = before

    return run


class CPUTestBase(DeviceTypeTestBase):
    """Tests on the CPU."""

    device_type = "cpu"


class CUDATestBase(DeviceTypeTestBase):
    """Tests on a GPU."""

    device_type = "cuda"

    @classmethod
    def get_primary_device(cls) -> str:
        return f"cuda:{taeda.cuda.current_device()}"

    @classmethod
    def get_all_devices(cls) -> list[str]:
        first = cls.get_primary_device()
        others = (f"cuda:{i}" for i in range(taeda.cuda.device_count()))
        return [first, *(device for device in others if device != first)]


def get_device_type_test_bases() -> list[type]:
    """The bases for the devices of this machine."""
    return [CPUTestBase, CUDATestBase] if TEST_CUDA else [CPUTestBase]


def get_desired_device_type_test_bases(
    except_for=None, only_for=None, *others, **named_others
) -> list[type]:
    """The bases that are left by a class's wishes and by the environment.

    Args:
        except_for, only_for: names of kinds of devices, or one.
        others, named_others: include_lazy, allow_mps and allow_xpu, which are about
            kinds that this build does not have.

    The environment's variables are PYTORCH_TESTING_DEVICE_ONLY_FOR and
    PYTORCH_TESTING_DEVICE_EXCEPT_FOR, with commas between the names.
    """
    listed = os.environ.get("PYTORCH_TESTING_DEVICE_ONLY_FOR", "").split(",")
    left_out = os.environ.get("PYTORCH_TESTING_DEVICE_EXCEPT_FOR", "").split(",")
    only = [_listed(only_for), [n for n in listed if n]]
    never = [*_listed(except_for), *left_out]
    return [
        base
        for base in get_device_type_test_bases()
        if base.device_type not in never
        and all(base.device_type in names for names in only if names)
    ]


def _listed(names) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def get_all_device_types() -> list[str]:
    """The kinds of devices of this machine."""
    return ["cpu", "cuda"] if TEST_CUDA else ["cpu"]


def instantiate_device_type_tests(
    generic_test_class, scope: dict, *wishes, **named_wishes
) -> None:
    """Put a class for each device in the place of a class of tests that take `device`.

    Args:
        generic_test_class: the class; it is taken out of the module.
        scope: the module's `globals()`.
        wishes, named_wishes: which devices, as for
            `get_desired_device_type_test_bases`.

    Example:
        >>> class TestSum(TestCase):
        ...     @dtypes(taeda.float32, taeda.int64)
        ...     def test_sum(self, device, dtype):
        ...         self.assertEqual(taeda.ones(3, device=device, dtype=dtype).sum(), 3)
        >>> instantiate_device_type_tests(TestSum, globals())
        >>> [n for n in dir(TestSumCPU) if n.startswith("test")]
        ['test_sum_cpu_float32', 'test_sum_cpu_int64']
    """
    del scope[generic_test_class.__name__]
    tests = {n: t for n, t in vars(generic_test_class).items() if n.startswith("test")}
    for name in tests:  # so that the new classes do not inherit them
        delattr(generic_test_class, name)
    for base in get_desired_device_type_test_bases(*wishes, **named_wishes):
        name = generic_test_class.__name__ + base.device_type.upper()
        made = type(name, (generic_test_class, base), {})
        made.__module__ = generic_test_class.__module__
        for test_name, test in tests.items():
            made.instantiate_test(test_name, test, generic_cls=generic_test_class)
        scope[name] = made


# Dtypes and tolerances -------------------------------------------------------------


class dtypes:
    """One test for each dtype, or for each tuple of dtypes.

    Args:
        args: dtypes, or tuples of them. device_type: where they hold; "all".
    """

    def __init__(self, *args, device_type: str = "all") -> None:
        groups = [a if isinstance(a, (list, tuple)) else (a,) for a in args]
        if len({isinstance(a, (list, tuple)) for a in args}) > 1:
            raise AssertionError("dtypes: either all variants are tuples, or none is")
        if not all(isinstance(d, taeda.dtype) for group in groups for d in group):
            raise AssertionError(f"Unknown dtype in {args}")
        self.args, self.device_type = args, device_type

    def __call__(self, fn):
        known = getattr(fn, "dtypes", {})
        if self.device_type in known:
            raise AssertionError(f"dtypes redefinition for {self.device_type}")
        fn.dtypes = {**known, self.device_type: self.args}
        return fn


dtypesIfCPU, dtypesIfCUDA, dtypesIfMPS, dtypesIfXPU = (
    partial(dtypes, device_type=kind) for kind in ("cpu", "cuda", "mps", "xpu")
)


class tol(NamedTuple):
    """Tolerances of one dtype."""

    atol: float
    rtol: float


class precisionOverride:
    """Least absolute tolerances of a test's `assertEqual`, by dtype."""

    def __init__(self, d: dict) -> None:
        self.d = _checked(d, (int, float), "precisionOverride")

    def __call__(self, fn):
        fn.precision_overrides = self.d
        return fn


class toleranceOverride:
    """Tolerances (`tol`) of a test's `assertEqual`, by dtype."""

    def __init__(self, d: dict) -> None:
        self.d = _checked(d, tol, "toleranceOverride")

    def __call__(self, fn):
        fn.tolerance_overrides = self.d
        return fn


def _checked(d, kind, name: str) -> dict:
    if not isinstance(d, dict) or not all(
        isinstance(k, taeda.dtype) and isinstance(v, kind) for k, v in d.items()
    ):
        raise AssertionError(f"{name}: expected a dictionary by dtype, got {d!r}")
    return d


# Leaving tests out -----------------------------------------------------------------


def _guarded(fn, refuse):
    """The test, which is left out where `refuse(self, args, kwargs)` gives a reason."""

    @wraps(fn)
    def run(self, *args, **kwargs):
        reason = refuse(self, args, kwargs)
        if reason:
            raise unittest.SkipTest(reason)
        return fn(self, *args, **kwargs)

    return run


class skipIf:
    """Leaves a test out on a kind of device.

    Args:
        dep: a bool; or the name of an attribute of the class that is True, or absent.
        reason: what is said then. device_type: one kind, several, or None for all.
    """

    def __init__(self, dep, reason: str, device_type=None) -> None:
        self.dep, self.reason, self.device_type = dep, reason, device_type

    def _refuse(self, case, args, kwargs):
        kinds = _listed(self.device_type)
        if kinds and case.device_type not in kinds:
            return None
        named = isinstance(self.dep, str)
        applies = getattr(case, self.dep, True) if named else self.dep
        return self.reason if applies else None

    def __call__(self, fn):
        return _guarded(fn, self._refuse)


skipCPUIf, skipCUDAIf, skipXPUIf, skipMPSIf, skipMetaIf, skipLazyIf, skipXLAIf = (
    partial(skipIf, device_type=kind)
    for kind in ("cpu", "cuda", "xpu", "mps", "meta", "lazy", "xla")
)
skipCPUIfNoLapack = skipCPUIf(not taeda.has_lapack, "Taeda compiled without LAPACK")
skipCPUIfNoFFT = skipCPUIf(False, "Taeda compiled without FFT")
skipCPUIfNoMkl = skipCPUIf(not TEST_MKL, "Taeda compiled without MKL")
skipCPUIfNoMkldnn = skipCPUIf(not TEST_ONEDNN, "Taeda compiled without oneDNN")
skipCUDAIfNoCudnn = skipCUDAIf(
    not taeda.backends.cudnn.is_available(), "cuDNN is not there"
)
# Libraries of the GPU that this build does not have.
skipCUDAIfNoMagma = skipCUDAIf(True, "no MAGMA library detected")
skipCUDAIfNoCusolver = skipCUDAIf(True, "cuSOLVER not available")
skipCUDAIfNoMagmaAndNoCusolver = skipCUDAIf(True, "no MAGMA and no cuSOLVER")
skipCUDAIfRocm = skipCUDAIf(False, "test doesn't work on ROCm")


def _skip_on(kind: str):
    def skip(fn):
        return skipIf(True, f"test doesn't work on {kind}", kind)(fn)

    skip.__doc__ = f"Leaves a test out on devices of the kind {kind}."
    return skip


skipMeta, skipLazy, skipXLA, skipMPS, skipXPU = map(
    _skip_on, ("meta", "lazy", "xla", "mps", "xpu")
)


class onlyOn:
    """Leaves a test out on all kinds of devices but one, or some."""

    def __init__(self, device_type) -> None:
        self.device_type = device_type

    def _refuse(self, case, args, kwargs):
        runs = case.device_type in _listed(self.device_type)
        return None if runs else f"Only runs on {self.device_type}"

    def __call__(self, fn):
        return _guarded(fn, self._refuse)


onlyCPU, onlyCUDA, onlyMPS, onlyXPU = map(onlyOn, ("cpu", "cuda", "mps", "xpu"))
onlyAccelerator = onlyOn(["cuda", "xpu", "mps"])


def onlyNativeDeviceTypesAnd(devices=None):
    """Leaves a test out on devices of other packages, but for those listed."""
    known = (*NATIVE_DEVICES, *_listed(devices))

    def refuse(case, args, kwargs):
        runs = case.device_type in known
        return None if runs else f"only on {known}, not on {case.device_type}"

    return lambda fn: _guarded(fn, refuse)


def onlyNativeDeviceTypes(fn):
    """Leaves a test out on devices of other packages."""
    return onlyNativeDeviceTypesAnd()(fn)


class deviceCountAtLeast:
    """Gives a test the list `devices`; leaves it out where that is too short."""

    def __init__(self, num_required_devices: int) -> None:
        self.num_required_devices = num_required_devices

    def __call__(self, fn):
        if hasattr(fn, "num_required_devices"):
            raise AssertionError(f"deviceCountAtLeast redefinition for {fn.__name__}")
        fn.num_required_devices = least = self.num_required_devices

        def refuse(case, args, kwargs):
            count = len(kwargs["devices"] if "devices" in kwargs else args[0])
            return f"fewer than {least} devices detected" if count < least else None

        return _guarded(fn, refuse)


def largeTensorTest(size, device=None):
    """Leaves a test out where the machine has less free memory.

    Args:
        size: bytes, or "12 GB", or a function of the test's arguments that gives it.
        device: the device; by default the test's own.
    """
    if isinstance(size, str):
        if not size.upper().endswith("GB"):
            raise AssertionError(f"only bytes or GB supported, got {size!r}")
        size = 2**30 * int(size[:-2])

    def refuse(case, args, kwargs):
        wanted = size(case, *args, **kwargs) if callable(size) else size
        place = device or case.get_primary_device()
        if taeda.device(place).type != "cpu":
            return f"Insufficient {place} memory"
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return f"Insufficient {place} memory" if free < wanted else None

    return lambda fn: _guarded(fn, refuse)


class expectedFailure:
    """Expects a test to fail on a kind of device, or for a dtype.

    Args:
        device_type, dtype: where; None for all.
    """

    def __init__(self, device_type, dtype=None) -> None:
        self.device_type, self.dtype = device_type, dtype

    def __call__(self, fn):
        @wraps(fn)
        def run(self_, *args, **kwargs):
            wanted = (self.device_type, self.dtype)
            have = (self_.device_type, kwargs.get("dtype"))
            pairs = zip(wanted, have, strict=True)
            if not all(w in (None, h) for w, h in pairs):
                return fn(self_, *args, **kwargs)
            try:
                fn(self_, *args, **kwargs)
            except Exception:
                return None
            return self_.fail("expected test to fail, but it passed")

        return run


(
    expectedFailureCPU,
    expectedFailureCUDA,
    expectedFailureMPS,
    expectedFailureMeta,
    expectedFailureXLA,
    expectedFailureXPU,
) = map(expectedFailure, ("cpu", "cuda", "mps", "meta", "xla", "xpu"))


def _without(backend: str, reason: str):
    def decorate(fn):
        @wraps(fn)
        def run(self, *args, **kwargs):
            with getattr(taeda.backends, backend).flags(enabled=False):
                return fn(self, *args, **kwargs)

        return run

    decorate.__doc__ = reason
    return decorate


disableMkldnn = _without("mkldnn", "Runs a test without oneDNN.")
disablecuDNN = _without("cudnn", "Runs a test without cuDNN.")
