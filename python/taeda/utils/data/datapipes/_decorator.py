"""Decorators for classes and methods of pipes."""

from __future__ import annotations

from functools import wraps

from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class functional_datapipe:
    """Puts a class of pipes under a functional name.

    Args:
        name: of the method that every pipe of that kind gets.
        enable_df_api_tracing: not implemented; there are no pipes of data frames.

    Raises:
        TypeError: what is decorated is no pipe.

    Example:
        >>> @functional_datapipe("doubled")
        ... class Doubled(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...     def __iter__(self):
        ...         yield from (2 * x for x in self.source)
    """

    def __init__(self, name: str, enable_df_api_tracing=False) -> None:
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls):
        inner = cls if isinstance(cls, type) else getattr(cls, "_decorated", None)
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(inner, type) and issubclass(inner, base):
                base.register_datapipe_as_function(
                    self.name, cls, self.enable_df_api_tracing
                )
                return cls
        raise TypeError(
            f"`functional_datapipe` can only decorate IterDataPipe, but got {cls!r}"
        )


class _Switch:
    """A process-wide setting that changes with the object and ends with `with`.

    It is for setting programs up; threads share it.
    """

    on: bool
    value: bool

    def __init__(self) -> None:
        kind = type(self)
        self.prev, kind.on = kind.on, kind.value

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        type(self).on = self.prev


class guaranteed_datapipes_determinism(_Switch):
    """Inside, pipes that are `non_deterministic` cannot be made."""

    on, value = False, True


class runtime_validation_disabled(_Switch):
    """Inside, `runtime_validation` checks nothing."""

    on, value = False, True


class non_deterministic:
    """Marks a class of pipes whose order is not the same each time.

    Args:
        arg: the class; or a function of its arguments that says whether an instance of
            the class that is decorated then is of that kind.

    Raises:
        TypeError: for what is no IterDataPipe; on making such a pipe inside
            `guaranteed_datapipes_determinism`.
    """

    def __init__(self, arg) -> None:
        self.cls = self.deterministic_fn = None
        if isinstance(arg, type):
            self.cls = _only_iter(arg)
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    @property
    def _decorated(self):
        return self.cls

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            return self._made(True, args, kwargs)
        self.cls = _only_iter(*args)

        @wraps(self.cls, updated=())
        def made(*args, **kwargs):
            return self.deterministic_wrapper_fn(*args, **kwargs)

        made._decorated = self.cls
        return made

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """Make an instance, after asking the function about its arguments."""
        varies = self.deterministic_fn(*args, **kwargs)
        if not isinstance(varies, bool):
            raise TypeError(
                "non_deterministic: the function is required to return a boolean "
                f"value, but {type(varies)} is found"
            )
        return self._made(varies, args, kwargs)

    def _made(self, varies: bool, args, kwargs):
        if varies and guaranteed_datapipes_determinism.on:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic, and "
                "'guaranteed_datapipes_determinism' is set; leave it where another "
                "order each time does no harm"
            )
        return self.cls(*args, **kwargs)


def _only_iter(cls) -> type:
    if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
        name = getattr(cls, "__name__", cls)
        raise TypeError(f"Only `IterDataPipe` can be decorated, but {name} is found")
    return cls


def _pipe_class(hint):
    """The class of pipes that a hint asks for, or None: `IterDataPipe[int]` too."""
    hint = getattr(hint, "__origin__", hint)
    is_pipe = isinstance(hint, type) and issubclass(hint, (IterDataPipe, MapDataPipe))
    return hint if is_pipe else None


def argument_validation(f):
    """A decorator: arguments whose hint is a class of pipes must be such pipes.

    Raises:
        TypeError: on a call, for an argument that is not.
    """
    from inspect import signature
    from typing import get_type_hints

    parameters = signature(f)
    wanted = {name: _pipe_class(hint) for name, hint in get_type_hints(f).items()}

    @wraps(f)
    def checked(*args, **kwargs):
        for name, value in parameters.bind(*args, **kwargs).arguments.items():
            kind = wanted.get(name)
            if kind is not None and not isinstance(value, kind):
                raise TypeError(
                    f"Expected argument '{name}' as a {kind.__name__}, but found "
                    f"{type(value)}"
                )
        return f(*args, **kwargs)

    return checked


def runtime_validation(f):
    """A decorator for `__iter__`: samples must be what its return hint says.

    Of `Iterator[tuple[int, str]]` the outer class is checked, here `tuple`.

    Raises:
        TypeError: for another method.
        RuntimeError: on iterating, for a sample of another type.
    """
    if f.__name__ != "__iter__":
        raise TypeError(
            f"Can not decorate function {f.__name__} with 'runtime_validation'"
        )
    kind = _sample_class(f)

    @wraps(f)
    def checked(self):
        for sample in f(self):
            off = runtime_validation_disabled.on
            if not off and kind is not None and not isinstance(sample, kind):
                raise RuntimeError(
                    f"Expected an instance as subtype of {kind}, but found {sample}"
                    f"({type(sample)})"
                )
            yield sample

    return checked


def _sample_class(f):
    """X of `-> Iterator[X]` as isinstance takes it; None where all is allowed."""
    from typing import get_args, get_type_hints

    arguments = get_args(get_type_hints(f).get("return"))
    if not arguments:
        return None
    hint = getattr(arguments[0], "__origin__", arguments[0])
    try:
        isinstance(None, hint)
    except TypeError:
        return None
    return hint
