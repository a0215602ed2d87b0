"""The pipes behind a pipe."""

from __future__ import annotations

import io
import pickle
from types import BuiltinFunctionType, FunctionType, ModuleType

import taeda
from taeda.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_PIPES = (IterDataPipe, MapDataPipe)
# Without pipes inside, and costly or impossible to pickle.
_LEAVES = (FunctionType, BuiltinFunctionType, ModuleType, type, taeda.Tensor)


class _Search(pickle.Pickler):
    """Walks through an object as pickling does, and notes the pipes that it meets."""

    def __init__(self, root) -> None:
        super().__init__(io.BytesIO())
        self.root, self.found = root, []

    def persistent_id(self, obj):
        if obj is self.root:
            return None
        if isinstance(obj, _PIPES):
            if not any(obj is known for known in self.found):
                self.found.append(obj)
            return "pipe"
        return "leaf" if isinstance(obj, _LEAVES) else None

    def reducer_override(self, obj):
        try:
            return obj.__reduce_ex__(4)
        except Exception:
            return (str, ())  # it cannot be pickled, so nothing is looked for inside


def _sources(pipe, only_datapipe: bool) -> list:
    """The pipes that a pipe refers to, in the order of its attributes."""
    state: object = vars(pipe)
    if only_datapipe:
        kinds = (*_PIPES, list, tuple, set, frozenset, dict)
        state = {k: v for k, v in vars(pipe).items() if isinstance(v, kinds)}
    search = _Search(pipe)
    search.dump(state)
    return search.found


def _graph(pipe, only_datapipe: bool, above: frozenset) -> dict:
    if id(pipe) in above:
        return {}
    inner: dict = {}
    for source in _sources(pipe, only_datapipe):
        inner.update(_graph(source, only_datapipe, above | {id(pipe)}))
    return {id(pipe): (pipe, inner)}


def _checked(pipe, only_datapipe: bool) -> dict:
    if not isinstance(pipe, _PIPES):
        raise RuntimeError(
            f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found"
        )
    return _graph(pipe, only_datapipe, frozenset())


def traverse_dps(datapipe) -> dict:
    """The graph of pipes that a pipe reads from.

    Only attributes that are pipes, or collections, are looked at.

    Args:
        datapipe: the last pipe of a pipeline.

    Returns:
        dict: {id(pipe): (pipe, graph of its sources)}.

    Raises:
        RuntimeError: it is no pipe.
    """
    return _checked(datapipe, only_datapipe=True)


def traverse(datapipe, only_datapipe: bool | None = None) -> dict:
    """As `traverse_dps`, looking at all attributes where `only_datapipe` is False."""
    if only_datapipe is None:
        import warnings

        warnings.warn(
            "traverse: `only_datapipe` is not given, and False is taken; use "
            "`traverse_dps` for True, which becomes the default.",
            FutureWarning,
            stacklevel=2,
        )
    return _checked(datapipe, bool(only_datapipe))
