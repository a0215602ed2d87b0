"""Functions of numbers that may be symbolic, and checks."""

from __future__ import annotations

import math

import taeda
from taeda._C import _handle_torch_function, _has_torch_function_unary
from taeda._symbols import symbol_text

__all__ = [
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


def sym_int(a):
    """The number, cut towards zero; a symbolic integer as it is."""
    return a.__sym_int__() if hasattr(a, "__sym_int__") else int(a)


def sym_float(a):
    """The number as a float; an expression where it is symbolic."""
    return a.__sym_float__() if hasattr(a, "__sym_float__") else float(a)


def sym_not(a):
    """Whether the condition is false; of a symbolic one, its opposite."""
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def _extremum(a, b, name: str, plain):
    if hasattr(a, name):
        return getattr(a, name)(b)
    if hasattr(b, name):
        return getattr(b, name)(a)
    return float(plain(a, b)) if float in (type(a), type(b)) else plain(a, b)


def sym_max(a, b):
    """The larger of two numbers; a float where one of them is."""
    return _extremum(a, b, "__sym_max__", max)


def sym_min(a, b):
    """The smaller of two numbers; a float where one of them is."""
    return _extremum(a, b, "__sym_min__", min)


def sym_ite(b, t, f):
    """The second argument where the first is true, else the third.

    A symbolic condition is decided, which leaves a guard.
    """
    return t if b else f


def sym_sqrt(a):
    """The square root; an expression where the number is symbolic."""
    if isinstance(a, (taeda.SymInt, taeda.SymFloat)):
        return taeda.SymFloat(f"OpaqueUnaryFn_sqrt({symbol_text(a)})", math.sqrt, a)
    return float(a) ** 0.5


def sym_sum(*args):
    """The sum of numbers, given one by one or as one sequence.

    Example:
        >>> taeda.sym_sum(1, 2), taeda.sym_sum([1, 2])
        (3, 3)
    """
    one = len(args) == 1 and isinstance(args[0], (list, tuple))
    return sum(args[0] if one else args)


def _checker(name: str, error: type):
    def check(cond, message=None) -> None:
        symbolic = isinstance(cond, taeda.SymBool)
        if not isinstance(cond, bool) and not symbolic:
            raise TypeError(f"cond must be a bool, but got {type(cond)}")
        if symbolic and not cond.node.has_hint():
            # Of a size that comes from data: true from here on.
            cond.node.hold(
                str(message()) if message else f"{symbol_text(cond)} does not hold"
            )
            return
        if cond:
            return
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        text = "Expected cond to be True, but got False. (Could this error message be"
        text += " improved? If so, please report an enhancement request.)"
        raise error(str(message()) if message else text)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises {error.__name__} unless a condition holds."
    return check


_check = _checker("_check", RuntimeError)
_check_index = _checker("_check_index", IndexError)
_check_value = _checker("_check_value", ValueError)
_check_type = _checker("_check_type", TypeError)
_check_not_implemented = _checker("_check_not_implemented", NotImplementedError)


def _check_with(error_type: type, cond, message) -> None:
    """Raises an error of the given type unless a condition holds."""
    _checker("_check_with", error_type)(cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """Raises RuntimeError unless a number can be a size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond, message=None) -> None:
    """Raises RuntimeError unless all elements of a boolean tensor hold."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error_type: type, cond, message=None) -> None:
    """Raises an error of the given type unless all elements hold."""
    if not isinstance(cond, taeda.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != taeda.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _assert(condition, message) -> None:
    """Python's assert as a function."""
    if type(condition) is not bool and _has_torch_function_unary(condition):
        return _handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


def _assert_async(input, assert_msg: str | None = None) -> None:
    """Raises RuntimeError unless a tensor's only element is nonzero."""
    if not bool(input):
        text = "Expected Tensor with single nonzero value, but got zero"
        raise RuntimeError(assert_msg or text)
