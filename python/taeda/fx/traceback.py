"""Where nodes come from: notes that a new node takes over from the one being run."""

from __future__ import annotations

import contextlib
import functools
import threading

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

# What nodes take over from `meta`.
_FIELDS = (
    *("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "torch_fn"),
    *("from_node", "custom", "recompute", "ac_graph_id", "partitioner_tag"),
)


class _State(threading.local):
    """Of each thread: whether notes are kept, and those of now."""

    kept = False
    meta: dict = {}  # exchanged as a whole, never written to


_now = _State()


@contextlib.contextmanager
def _exchanged(**values):
    before = {name: getattr(_now, name) for name in values}
    vars(_now).update(values)
    try:
        yield
    finally:
        vars(_now).update(before)


def preserve_node_meta(enable: bool = True):
    """A context: nodes made in it take over the notes of the node being run."""
    return _exchanged(kept=enable)


def has_preserved_node_meta() -> bool:
    """Whether such a context is open."""
    return _now.kept


def set_current_meta(node, pass_name: str = ""):
    """A context in which this node counts as being run."""
    if not (_now.kept and node.meta):
        return contextlib.nullcontext()
    return _exchanged(meta=dict(node.meta))


def get_current_meta() -> dict:
    """The notes of the node being run."""
    return _now.meta


def set_stack_trace(stack: list[str]) -> None:
    """Sets the stack trace that new nodes take over."""
    if _now.kept and stack:
        _now.meta = {**_now.meta, "stack_trace": "".join(stack)}


def format_stack() -> list[str]:
    """The stack trace that new nodes take over, or the present one."""
    if _now.kept:
        return [_now.meta.get("stack_trace", "")]
    import traceback

    return traceback.format_stack()


def annotate(annotation_dict: dict):
    """A context: nodes made in it have these entries in `meta["custom"]`."""
    custom = {**_now.meta.get("custom", {}), **annotation_dict}
    return _exchanged(meta={**_now.meta, "custom": custom})


def annotate_fn(annotation_dict: dict):
    """A decorator: nodes made in the function are those of `annotate`."""

    def decorate(function):
        @functools.wraps(function)
        def annotated(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


def _kept(meta: dict) -> dict:
    return {name: meta[name] for name in _FIELDS if meta.get(name) is not None}
