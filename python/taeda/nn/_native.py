"""Access to the operators that the native layer offers, under ATen's names."""

from __future__ import annotations

from taeda import _C

_spaces = (getattr(_C, "_nn", None), getattr(_C, "_VariableFunctions", None))


def native(name: str):
    """The native operator `name`; a function that names it when there is none."""
    for space in _spaces:
        found = getattr(space, name, None)
        if found is not None:
            return found

    def missing(*args, **kwargs):
        raise NotImplementedError(f"{name}: this operator has no native function yet")

    missing.__name__ = missing.__qualname__ = name
    return missing


def _never(*args) -> bool:
    return False


# Whether an argument overrides functions by __torch_function__: of one tensor, of
# several arguments, of a sequence.
overrides_one = getattr(_C, "_has_torch_function_unary", _never)
overrides_any = getattr(_C, "_has_torch_function_variadic", _never)
overrides_in = getattr(_C, "_has_torch_function", _never)


def dispatch(function, tensors, *args, **kwargs):
    """Hand a call to the __torch_function__ of one of `tensors`."""
    from taeda.overrides import handle_torch_function

    return handle_torch_function(function, tensors, *args, **kwargs)


def relay(function, tensors, given):
    """`dispatch` a call whose arguments are the caller's `locals()`.

    Parameters without a default go by position, all others by name.
    """
    placed = function.__code__.co_argcount - len(function.__defaults__ or ())
    items = list(given.items())
    args = (value for _, value in items[:placed])
    return dispatch(function, tensors, *args, **dict(items[placed:]))


def warn(text: str, category=UserWarning, level: int = 3) -> None:
    """warnings.warn without importing warnings beforehand."""
    import warnings

    warnings.warn(text, category, stacklevel=level)
