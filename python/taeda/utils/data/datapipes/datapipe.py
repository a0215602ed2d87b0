"""Base classes of pipes, and the chunks that batches come in."""

from __future__ import annotations

from functools import partial

from taeda.utils.data.dataset import Dataset, IterableDataset

from ._passes import watched

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class _Pipe:
    """What both kinds of pipes share: functional names, hooks of pickling, and texts.

    `functions` and the hooks belong to a base class and are set while programs are
    set up; nothing guards them against threads.
    """

    functions: dict
    reduce_ex_hook = None
    getstate_hook = None
    str_hook = None
    repr_hook = None

    def __getattr__(self, name: str):
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        return partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function) -> None:
        """Make `pipe.function_name(...)` mean `function(pipe, ...)`."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register, enable_df_api_tracing: bool = False
    ) -> None:
        """Make `pipe.function_name(...)` a pipe of that class, with `pipe` as source.

        Raises:
            Exception: another pipe has the name.
            NotImplementedError: enable_df_api_tracing.
        """
        if enable_df_api_tracing:
            raise NotImplementedError(
                "register_datapipe_as_function: enable_df_api_tracing is not "
                "implemented; there are no pipes of data frames"
            )
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is "
                "already taken"
            )

        def made(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        made.__name__, made.__doc__ = function_name, cls_to_register.__doc__
        cls.functions[function_name] = made

    def __getstate__(self):
        hook = type(self).getstate_hook
        return vars(self) if hook is None else hook(vars(self))

    def __reduce_ex__(self, protocol):
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass  # the hook leaves this pipe to the usual way
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn) -> None:
        """Let a function of the attributes say what is pickled; None takes it away.

        Raises:
            RuntimeError: there is one already.
        """
        _set_hook(cls, "getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn) -> None:
        """Let a function of the pipe say how it is pickled; None takes it away.

        Raises:
            RuntimeError: there is one already.
        """
        _set_hook(cls, "reduce_ex_hook", hook_fn)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __dir__(self):
        return [*super().__dir__(), *type(self).functions]


def _set_hook(cls, name: str, hook) -> None:
    if hook is not None and getattr(cls, name) is not None:
        raise RuntimeError(f"Attempt to override existing {name}")
    setattr(cls, name, hook)


class IterDataPipe(_Pipe, IterableDataset):
    """A pipe that is read from its beginning to its end.

    A subclass defines `__iter__`, and `__len__` where the length is known. There is one
    valid iterator at a time: making another ends the one before, and calls `reset`.

    Example:
        >>> from taeda.utils.data.datapipes.iter import IterableWrapper
        >>> pipe = IterableWrapper(range(6)).map(abs).batch(4)
        >>> list(pipe)
        [[0, 1, 2, 3], [4, 5]]
    """

    functions: dict = {}
    _pass = 0

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        begin = vars(cls).get("__iter__")
        if hasattr(begin, "__code__"):
            cls.__iter__ = watched(begin)

    @watched
    def __iter__(self):
        return self

    def reset(self) -> None:
        """Called before each pass; subclasses drop here what a pass has left behind."""

    def _claim(self):
        """Begin a pass: what this returns is valid until the next one begins."""
        self._pass += 1
        self.reset()
        return self._pass

    def _holds(self, claim) -> bool:
        return claim == self._pass

    def __getstate__(self):
        state = super().__getstate__()
        if isinstance(state, dict):  # passes stay with the process that runs them
            state = {k: v for k, v in state.items() if k != "_pass"}
        return state


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Pipe, Dataset):
    """A pipe whose samples are found by index or key.

    A subclass defines `__getitem__`, and mostly `__len__`.

    Example:
        >>> from taeda.utils.data.datapipes.map import SequenceWrapper
        >>> SequenceWrapper([3, 1]).map(str)[0]
        '3'
    """

    functions: dict = {}


class DataChunk(list):
    """A list of samples that were put together, as `batch` gives them."""

    def __init__(self, items) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """`[1, 2]` after an indentation."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def __iter__(self):
        yield from super().__iter__()

    def raw_iterator(self):
        """The samples as they were put in, where a subclass iterates otherwise."""
        yield from self.items
