"""Decorators that leave tests out, or run them in their own way."""

from __future__ import annotations

import sys
import unittest
from functools import wraps

import taeda

from . import _environment as facts

__all__ = [
    "gradcheck",
    "gradgradcheck",
    "retry",
    "serialTest",
    "skipIfCompiledWithoutNumpy",
    "skipIfCrossRef",
    "skipIfHpu",
    "skipIfMPS",
    "skipIfNoLapack",
    "skipIfNoSciPy",
    "skipIfNoXPU",
    "skipIfPythonVersionMismatch",
    "skipIfRocm",
    "skipIfTorchDynamo",
    "skipIfTorchInductor",
    "skipIfWindows",
    "skipIfXpu",
    "skip_but_pass_in_sandcastle",
    "skip_but_pass_in_sandcastle_if",
    "slowTest",
    "slowTestIf",
    "xfailIf",
    "xfailIfLinux",
    "xfailIfTorchDynamo",
    "xfailIfWindows",
]


def _skip_unless(condition: bool, reason: str):
    return unittest.skipIf(not condition, reason)


slowTest = _skip_unless(
    facts.TEST_WITH_SLOW, "test is slow; run with PYTORCH_TEST_WITH_SLOW=1 to enable"
)
skipIfNoSciPy = _skip_unless(
    facts.TEST_SCIPY, "test requires SciPy, which is not there"
)
skipIfCompiledWithoutNumpy = _skip_unless(facts.TEST_NUMPY, "test requires NumPy")
skipIfNoLapack = _skip_unless(taeda.has_lapack, "test requires LAPACK")
skipIfNoXPU = _skip_unless(facts.TEST_XPU, "test requires XPU")
skipIfCrossRef = unittest.skipIf(facts.TEST_WITH_CROSSREF, "test under crossref")


def slowTestIf(condition):
    """`slowTest` where the condition holds."""
    return slowTest if condition else _as_it_is


def _as_it_is(fn):
    return fn


def _never(reason: str):
    """A decorator for what this library never is; it takes a message too."""

    def decorate(func=None, *, msg: str = reason):
        return _as_it_is if func is None or isinstance(func, str) else func

    decorate.__doc__ = f"Leaves a test out on a build for {reason}; this is none."
    return decorate


skipIfRocm = _never("ROCm")
skipIfHpu = _never("HPU")
skipIfMPS = _never("MPS")
skipIfXpu = _never("XPU")


def skipIfTorchDynamo(msg="test doesn't currently work with dynamo"):
    """Leaves a test out where all tests are compiled, which is no way to run here."""
    return _as_it_is if isinstance(msg, str) else msg


def skipIfTorchInductor(
    msg="test doesn't currently work with torchinductor", condition=False
):
    """The same for the default compiler."""
    return _as_it_is if isinstance(msg, str) else msg


def skipIfWindows(func=None, *, msg: str = "test doesn't work on Windows"):
    """Leaves a test out on Windows."""
    skip = unittest.skipIf(facts.IS_WINDOWS, msg)
    return skip if func is None else skip(func)


def skipIfPythonVersionMismatch(predicate):
    """Leaves a test out where a function of `sys.version_info` says False."""
    return _skip_unless(predicate(sys.version_info), "another version of Python")


def xfailIf(condition):
    """Expects a test to fail where the condition holds."""
    return unittest.expectedFailure if condition else _as_it_is


def xfailIfLinux(func):
    """Expects a test to fail on Linux."""
    return xfailIf(facts.IS_LINUX)(func)


def xfailIfWindows(func):
    """Expects a test to fail on Windows."""
    return xfailIf(facts.IS_WINDOWS)(func)


def xfailIfTorchDynamo(func):
    """Expects a test to fail where all tests are compiled, which is no way to run."""
    return func


skip_but_pass_in_sandcastle = unittest.skip
skip_but_pass_in_sandcastle_if = unittest.skipIf


def serialTest(condition: bool = True):
    """Marks a test that is not to run beside others, where pytest is installed."""

    def decorate(fn):
        if not condition or "pytest" not in sys.modules:
            return fn
        import pytest

        return pytest.mark.serial(fn)

    return decorate


def retry(ExceptionToCheck, tries: int = 3, delay: float = 3, skip_after_retries=False):
    """A decorator: run a function again, after a pause, where it raises such an error.

    Args:
        ExceptionToCheck: a class of errors, or a tuple of them.
        tries: how often at most. delay: seconds between.
        skip_after_retries: leave the test out afterwards, in place of the error.
    """
    import time

    def decorate(fn):
        @wraps(fn)
        def again(*args, **kwargs):
            for left in reversed(range(tries)):
                try:
                    return fn(*args, **kwargs)
                except ExceptionToCheck as error:
                    if left:
                        time.sleep(delay)
                    elif skip_after_retries:
                        text = f"Skipping after {tries} consecutive {error!r}"
                        raise unittest.SkipTest(text) from error
                    else:
                        raise
            return None

        return again

    return decorate


def _quick(check):
    @wraps(check)
    def checked(fn, inputs, *args, **kwargs):
        kwargs.setdefault("fast_mode", not facts.TEST_WITH_SLOW_GRADCHECK)
        return check(fn, inputs, *args, **kwargs)

    return checked


gradcheck = _quick(taeda.autograd.gradcheck)
gradgradcheck = _quick(taeda.autograd.gradgradcheck)
