"""The class of tests, whose `assertEqual` compares tensors with tolerances."""

from __future__ import annotations

import cmath
import contextlib
import sys
import unittest
import warnings
from collections.abc import Mapping, Sequence
from enum import Enum
from numbers import Number

import taeda
from taeda.testing import assert_close
from taeda.testing._comparison import default_tolerances

from ._settings import set_rng_seed

try:  # the package has `assertExpectedInline`
    from expecttest import TestCase as _Base
except ImportError:
    _Base = unittest.TestCase

__all__ = ["NoTest", "TestCase", "load_tests", "run_tests"]

# Tolerances of Python's numbers are those of dtypes with fewer digits.
_NUMBERS = {complex: taeda.complex64, float: taeda.float32}


class NoTest:
    """What a module of tests that cannot run puts in the place of `TestCase`."""


class TestCase(_Base):
    """Base class of tests; each begins with the same seeds.

    precision, rel_tol: least tolerances of `assertEqual`, absolute and relative.
    """

    maxDiff = None
    precision: float = 0
    rel_tol: float = 0

    def setUp(self) -> None:
        set_rng_seed()

    def assertEqual(
        self,
        x,
        y,
        msg=None,
        *,
        atol: float | None = None,
        rtol: float | None = None,
        equal_nan=True,
        exact_dtype=True,
        exact_device=False,
        exact_layout=False,
        exact_stride=False,
        exact_is_coalesced=False,
    ) -> None:
        """Check that two values are equal, tensors and numbers with tolerances.

        Args:
            x, y: tensors, arrays, numbers (also one of them and a tensor of one
                element), any other objects, and sequences and mappings of these.
            msg: text, or a function of the text about the difference.
            atol, rtol: both or neither; by default they follow the dtype.
            equal_nan: whether NaN equals NaN.
            exact_dtype, exact_device, exact_layout, exact_stride: what else has to
                agree of tensors.
            exact_is_coalesced: the same of sparse ones.

        Raises:
            AssertionError: they are not.
        """
        __tracebackhide__ = True
        if (atol is None) != (rtol is None):
            raise ValueError("assertEqual: give both of atol and rtol, or neither")
        compare = _Comparison(self, atol, rtol, equal_nan)
        compare.exact = {
            "check_dtype": exact_dtype,
            "check_device": exact_device,
            "check_layout": exact_layout,
            "check_stride": exact_stride,
        }
        compare.coalesced = exact_is_coalesced
        try:
            compare(x, y, "")
        except AssertionError as error:
            text = str(error)
            if callable(msg):
                text = msg(text)
            elif msg is not None:
                text = f"{text}\n{msg}" if self.longMessage else msg
            raise AssertionError(text) from None

    def assertNotEqual(self, x, y, msg=None, **options) -> None:
        """Check that `assertEqual` refuses two values."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, msg, **options)

    def assertEqualIgnoreType(self, *args, **kwargs) -> None:
        """`assertEqual` without the dtypes."""
        self.assertEqual(*args, exact_dtype=False, **kwargs)

    def assertEqualBroadcasting(self, x, y, *args, **kwargs) -> None:
        """Check that a tensor is a smaller one, or a number, repeated."""
        other = taeda.as_tensor(y, dtype=x.dtype, device=x.device)
        self.assertEqual(x, other.broadcast_to(x.shape), *args, **kwargs)

    def assertEqualTypeString(self, x, y) -> None:
        """Check that two tensors have the same dtype and device."""
        self.assertEqual((x.device, x.dtype), (y.device, y.dtype))

    def assertObjectIn(self, obj, iterable) -> None:
        """Check that this very object is among others."""
        if not any(other is obj for other in iterable):
            raise AssertionError("object not found in iterable")

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex: str = ""):
        """Check that one warning of a kind comes, also of those given once only."""
        from ._settings import set_warn_always_context

        with set_warn_always_context(True), self.assertWarnsRegex(category, regex):
            yield

    def assertNotWarn(self, callable, msg: str = "") -> None:
        """Check that a call gives no warning."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            callable()
        self.assertTrue(not seen, msg)


class _Comparison:
    """One call of `assertEqual`."""

    exact: dict
    coalesced: bool

    def __init__(self, case: TestCase, atol, rtol, equal_nan: bool) -> None:
        self.case, self.atol, self.rtol, self.equal_nan = case, atol, rtol, equal_nan

    def tolerances(self, *dtypes) -> dict:
        """The looser of what holds for the dtypes (or was given) and of the class's."""
        rtol, atol = self.rtol, self.atol
        if rtol is None:
            rtol, atol = default_tolerances(*dtypes)
        rtol, atol = max(rtol, self.case.rel_tol), max(atol, self.case.precision)
        return {"rtol": rtol, "atol": atol, "equal_nan": self.equal_nan}

    def __call__(self, x, y, path: str) -> None:
        x, y = _like(x, y), _like(y, x)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            self.of(set(x), set(y), f"{path}, keys")
            for key in x:
                self(x[key], y[key], f"{path}[{key!r}]")
        elif _is_sequence(x) and _is_sequence(y):
            if len(x) != len(y):
                _fail(
                    f"The length of the sequences mismatch: {len(x)} != {len(y)}", path
                )
            for i, (a, b) in enumerate(zip(x, y, strict=True)):
                self(a, b, f"{path}[{i}]")
        else:
            self.of(x, y, path)

    def of(self, x, y, path: str) -> None:
        """Compare two that are no containers."""
        if x is None or y is None:
            if x is not y:
                _fail(f"None mismatch: {x} is not {y}", path)
        elif isinstance(x, bool) or isinstance(y, bool):
            self.bools(x, y, path)
        elif _is_number(x) or _is_number(y):
            self.numbers(x, y, path)
        elif _is_array(x) and _is_array(y):
            self.tensors(x, y, path)
        elif type(x).__name__ == type(y).__name__ == "TypedStorage":
            self.tensors(*map(_content, (x, y)), path)
        elif x != y:
            self.unequal(x, y, path)

    def unequal(self, x, y, path: str) -> None:
        """Let unittest tell the difference of texts, sets and objects."""
        try:
            unittest.TestCase.assertEqual(self.case, x, y)
        except AssertionError as error:
            _fail(str(error), path)

    def bools(self, x, y, path: str) -> None:
        """One is a bool, the other one may be a tensor of one element."""
        x, y = (_single(v, path) for v in (x, y))
        if not all(isinstance(v, (bool, Number)) for v in (x, y)) or bool(x) != bool(y):
            _fail(f"Booleans mismatch: {x} is not {y}", path)

    def numbers(self, x, y, path: str) -> None:
        """One is a number, the other one may be a tensor of one element."""
        x, y = (_single(v, path) for v in (x, y))
        if not all(isinstance(v, Number) for v in (x, y)):
            self.unequal(x, y, path)
            return
        dtypes = [_NUMBERS.get(type(v), taeda.int64) for v in (x, y)]
        allowed = self.tolerances(*dtypes)
        same_nan = self.equal_nan and cmath.isnan(x) and cmath.isnan(y)
        gap = abs(x - y) if x != y else 0
        limit = allowed["atol"] + allowed["rtol"] * abs(y)
        if x == y or same_nan or (cmath.isfinite(gap) and gap <= limit):
            return
        _fail(
            f"Scalars are not close!\n\nExpected {y} but got {x}.\n"
            f"Absolute difference: {gap} (up to {limit} allowed)",
            path,
        )

    def tensors(self, x, y, path: str) -> None:
        """Both are tensors or arrays."""
        a, b = (
            v if isinstance(v, taeda.Tensor) else taeda.as_tensor(v) for v in (x, y)
        )
        if self.coalesced and a.is_sparse and a.is_coalesced() != b.is_coalesced():
            _fail("one of the sparse tensors is coalesced, the other one is not", path)
        try:
            assert_close(a, b, **self.exact, **self.tolerances(a.dtype, b.dtype))
        except TypeError as error:
            _fail(str(error), path)
        except AssertionError as error:
            _fail(str(error), path)


def _like(value, other):
    """A sequence beside a tensor as a tensor of its kind; other values as they are."""
    if isinstance(value, Sequence) and isinstance(other, taeda.Tensor):
        return other.new_tensor(value)
    return value


def _fail(text: str, path: str) -> None:
    place = f"\n\nThe failure occurred for item {path}" if path else ""
    raise AssertionError(text + place)


def _is_sequence(value) -> bool:
    kinds = (Sequence, taeda.nn.Sequential, taeda.nn.ModuleList, taeda.nn.ParameterList)
    return isinstance(value, kinds) and not isinstance(value, (str, bytes))


def _is_array(value) -> bool:
    return isinstance(value, taeda.Tensor) or hasattr(value, "__array_interface__")


def _is_number(value) -> bool:
    array = _is_array(value) and getattr(value, "ndim", 1) > 0
    return isinstance(value, (Number, Enum)) and not array


def _content(storage):
    return taeda.tensor(storage.tolist(), dtype=storage.dtype)


def _single(value, path: str):
    """The number that a number, an enumerator or a tensor of one element holds."""
    if isinstance(value, Enum):
        return int(value.value) if isinstance(value.value, Number) else value
    if not _is_array(value):
        return value
    count = value.numel() if isinstance(value, taeda.Tensor) else value.size
    if count != 1:
        raise ValueError(
            "Only single element tensor-likes can be compared against a number. Got "
            f"{count} elements instead."
        )
    return value.item()


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the program's main module, and end with their status.

    Args:
        argv: of `unittest.main`; by default the program's own.
    """
    unittest.main(argv=sys.argv if argv is None else argv)


def load_tests(loader, tests, pattern):
    """The protocol of unittest: all tests that it has found, in one suite."""
    return unittest.TestSuite(tests)
