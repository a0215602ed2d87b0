"""Whether calls are recorded: context managers that also serve as decorators."""

from __future__ import annotations

import taeda
from taeda import _C

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Decorator:
    """Calling a mode with a function gives the function that runs inside the mode."""

    def __call__(self, orig_func):
        return _decorate(self.clone, orig_func)

    def clone(self):
        """A mode like this one, for each call of a decorated function."""
        return type(self)()


def _decorate(make_mode, function):
    import functools
    import inspect

    if isinstance(function, type):
        import warnings

        warnings.warn(
            f"Decorating classes is deprecated and will be disabled in future "
            f"versions. You should only decorate functions or methods. To preserve "
            f"the current behavior of class decoration, you can directly decorate the "
            f"`__init__` method and nothing else. ({function.__name__})",
            FutureWarning,
            stacklevel=3,
        )
        function.__init__ = _decorate(make_mode, function.__init__)
        return function
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(make_mode, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args, **kwargs):
            with make_mode():
                return await function(*args, **kwargs)

        return awaited

    @functools.wraps(function)
    def called(*args, **kwargs):
        with make_mode():
            return function(*args, **kwargs)

    return called


def _decorate_generator(make_mode, function):
    """The mode holds while the generator runs, not while it is suspended."""
    import functools

    @functools.wraps(function)
    def generated(*args, **kwargs):
        source = function(*args, **kwargs)
        try:
            with make_mode():
                item = source.send(None)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with make_mode():
                        source.close()
                    raise
                except BaseException as error:
                    with make_mode():
                        item = source.throw(error)
                else:
                    with make_mode():
                        item = source.send(sent)
        except StopIteration as end:
            return end.value

    return generated


class no_grad(_C._NoGrad, _Decorator):
    """Inside, nothing is recorded: results require no grad.

    Example:
        >>> w = taeda.ones(2, requires_grad=True)
        >>> with taeda.no_grad():
        ...     y = w * 2
        >>> y.requires_grad
        False
    """

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return _C._NoGrad.__new__(cls)
        return cls()(orig_func)


class enable_grad(_C._EnableGrad, _Decorator):
    """Inside, calls are recorded again.

    Example:
        >>> w = taeda.ones(2, requires_grad=True)
        >>> with taeda.no_grad(), taeda.enable_grad():
        ...     y = w * 2
        >>> y.requires_grad
        True
    """

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return _C._EnableGrad.__new__(cls)
        return cls()(orig_func)


class set_grad_enabled(_Decorator):
    """Switches recording on or off at once; as a context manager, for its length.

    Args:
        mode (bool): whether calls are recorded.

    Example:
        >>> w = taeda.ones(2, requires_grad=True)
        >>> with taeda.set_grad_enabled(False):
        ...     y = w * 2
        >>> y.requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        self.prev = _C.is_grad_enabled()
        _C._set_grad_enabled(mode)
        self.mode = mode

    def __call__(self, orig_func):
        _C._set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _C._set_grad_enabled(self.prev)

    def __str__(self) -> str:
        place = f"{taeda.__name__}.autograd.grad_mode"
        return f"{place}.set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """Another one with the same mode."""
        prev = _C.is_grad_enabled()
        other = type(self)(self.mode)
        # Construction switched; entering will do so again.
        _C._set_grad_enabled(prev)
        return other


class inference_mode(_C._InferenceMode, _Decorator):
    """As no_grad, and results can never be part of a graph.

    Args:
        mode (bool or function): whether inference mode is on.

    Example:
        >>> with taeda.inference_mode():
        ...     y = taeda.ones(2)
        >>> y.is_inference()
        True
    """

    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return _C._InferenceMode.__new__(cls, mode)
        return cls()(mode)

    def clone(self) -> inference_mode:
        """Another one with the same mode."""
        return type(self)(self.mode)


def _exchange_multithreading(mode: bool) -> bool:
    from taeda import _cuda

    return _cuda.exchange_multithreading(mode)


class set_multithreading_enabled(_Decorator):
    """Whether backward passes of this thread use the threads of GPUs.

    CPU passes run on the calling thread in any case. It holds from when it is made, and
    ends with a `with` block.

    Args:
        mode: False for passes that run on the calling thread alone.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = _exchange_multithreading(mode)

    def __enter__(self) -> None:
        _exchange_multithreading(self.mode)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _exchange_multithreading(self._before)

    def clone(self) -> set_multithreading_enabled:
        """Another one with the same mode."""
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """Whether backward passes of this thread use the threads of GPUs.

    Example:
        >>> with taeda.autograd.set_multithreading_enabled(False):
        ...     taeda.autograd.is_multithreading_enabled()
        False
    """
    mode = _exchange_multithreading(True)
    _exchange_multithreading(mode)
    return mode


class _unsafe_preserve_version_counter(_Decorator):
    """In which changes of tensors in place are not counted: for writes of which the
    program knows that no gradient depends on them.

    Args:
        tensors: one, or a tuple of several.
    """

    def __init__(self, tensors) -> None:
        self.tensors = (tensors,) if isinstance(tensors, _C.TensorBase) else tensors
        self.versions = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        for tensor, version in zip(self.tensors, self.versions, strict=True):
            _C._set_version(tensor, version)

    def clone(self) -> _unsafe_preserve_version_counter:
        """Another one of the same tensors."""
        return type(self)(self.tensors)


class _force_original_view_tracking(_Decorator):
    """Kept for programs that use it: views are always replayed by geometry."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        pass

    def clone(self) -> _force_original_view_tracking:
        """Another one with the same mode."""
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Decorator):
    """Whether gradients that become `grad` without a copy must have the strides of
    their tensor.

    Kept for programs that use it: they always have them here, which False allows too.

    Args:
        enable (bool): False only says that other strides would do as well.
    """

    def __init__(self, enable: bool = True) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        pass

    def clone(self) -> enforce_grad_layout_policy:
        """Another one with the same choice."""
        return type(self)(self.enable)
