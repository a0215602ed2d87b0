"""Modes and classes of tensors that compute operators themselves.

`TorchDispatchMode` sees every operator below autograd; a class of tensors with
`__torch_dispatch__` sees those on its tensors.
"""

from __future__ import annotations

import contextlib

import taeda
from taeda import _C

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """A context inside of which `__torch_dispatch__` computes every operator.

    The method gets the overload (`taeda.ops.aten.add.Tensor`), the classes among the
    arguments that have a `__torch_dispatch__`, and the call's arguments; its result is
    the call's. Composite operators arrive as what they are made of, calls under
    autograd below it. Inside of the method the mode is off, the modes around it are
    not. A mode belongs to the thread that entered it.

    Example:
        >>> class Names(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     y = taeda.ones(2) + 1
        aten.ones.default
        aten.add.Tensor
    """

    def __init__(self, _dispatch_key=None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                f"TorchDispatchMode: modes of the key {_dispatch_key} are not there"
            )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__name__} must define __torch_dispatch__"
        )

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, *exception) -> None:
        with _without_program_modes(self):
            _pop_mode()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it is the library's own: such modes stand around all others."""
        return False

    @classmethod
    def push(cls, *args, **kwargs):
        """The old way to make one: the same as calling the class."""
        import warnings

        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just "
            "`with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


# The stack of this thread ------------------------------------------------------


def _push_mode(mode) -> None:
    with _without_program_modes(mode):
        _C._push_on_torch_dispatch_stack(mode)


@contextlib.contextmanager
def _without_program_modes(mode):
    """For one of the library's own modes: inside, only such modes are there."""
    aside = []
    while mode.is_infra_mode() and _is_program_mode(_get_current_dispatch_mode()):
        aside.append(_C._pop_torch_dispatch_stack())
    try:
        yield
    finally:
        for each in reversed(aside):
            _C._push_on_torch_dispatch_stack(each)


def _is_program_mode(mode) -> bool:
    return mode is not None and not mode.is_infra_mode()


def _pop_mode(k=None):
    return _C._pop_torch_dispatch_stack()


def _get_current_dispatch_mode():
    """The innermost mode, or None."""
    count = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(count - 1) if count else None


def _get_current_dispatch_mode_stack() -> list:
    """All modes, innermost last."""
    count = _C._len_torch_dispatch_stack()
    return [_C._get_dispatch_stack_at(i) for i in range(count)]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether the thread has modes; on request only those of programs count."""
    return any(
        include_infra_modes or not mode.is_infra_mode()
        for mode in _get_current_dispatch_mode_stack()
    )


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """Inside, the thread has no modes; gives those that it had, innermost last."""
    modes = [_pop_mode() for _ in range(_C._len_torch_dispatch_stack())]
    modes.reverse()
    try:
        yield modes
    finally:
        for mode in modes:
            _push_mode(mode)


# Wrappers ------------------------------------------------------------------------


def is_traceable_wrapper_subclass(t) -> bool:
    """Whether a tensor tells by `__tensor_flatten__` which tensors it holds."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same of a class."""
    return (
        issubclass(t, taeda.Tensor)
        and t is not taeda.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A wrapper of the same class around changed tensors.

    Args:
        t: a traceable wrapper.
        callback: (attribute's name, inner tensor) -> the tensor in its place.
        outer_size, outer_stride: geometry of the new wrapper; by default `t`'s.

    Raises:
        AssertionError: the new wrapper has another geometry.
    """
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    got = (tuple(made.shape), tuple(made.stride()))
    wanted = (tuple(outer_size), tuple(outer_stride))
    if got != wanted:
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ gives sizes and strides {got}, "
            f"expected {wanted}"
        )
    return made


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper's `__torch_dispatch__` returns so that memory is shared right.

    The result of an in-place or `out=` operator becomes the argument that was written;
    the result of a view gets the storage of what it is a view of.

    Args:
        func, args, kwargs: the call.
        out: the results, wrapped.
    """
    schema = func._schema
    given = {a.name: v for a, v in zip(schema.arguments, args, strict=False)}
    given.update(kwargs or {})
    several = len(schema.returns) > 1
    results = list(out) if several else [out]
    for i, result in enumerate(schema.returns):
        info = result.alias_info
        if info is None:
            continue
        shared = _argument_of(schema, info, given)
        if shared is None:
            continue
        if info.is_write:
            results[i] = shared
        elif isinstance(shared, taeda.Tensor):
            _share(results[i], shared)
    return type(out)(results) if several else results[0]


def _argument_of(schema, info, given):
    for argument in schema.arguments:
        own = argument.alias_info
        if own is not None and own.before_set & info.before_set:
            return given.get(argument.name)
    return None


def _share(result, shared) -> None:
    for item in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(item, taeda.Tensor) and item is not shared:
            _C._share_storage(item, shared)
