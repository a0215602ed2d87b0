"""The compiler's parts under the names that programs know them by."""

from __future__ import annotations

from typing import NamedTuple

from taeda._lazy import attributes
from taeda.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)

from . import eval_frame, exc
from .eval_frame import OptimizedModule, is_dynamo_supported

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "eval_frame",
    "exc",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "register_backend",
    "reset",
    "run",
    "set_stance",
    "substitute_in_graph",
]
__getattr__ = attributes(
    __name__,
    {
        "error_on_graph_break": ".compiler._marks",
        "explain": ".compiler._explain",
        "export": ".compiler._whole",
        "lookup_backend": ".compiler._backends",
        "nonstrict_trace": ".compiler._nonstrict",
        "register_backend": ".compiler._backends",
        "set_stance": ".compiler._stance",
    },
    ("compiled_autograd", "config", "decorators", "testing", "utils"),
)


class _DimRange(NamedTuple):
    """The sizes that a dim was said to have; None where there is no limit."""

    dim: int
    min: int | None
    max: int | None


def _marked(t, index, name: str) -> list[int]:
    """Adds dims to a tensor's marks of one kind."""
    dims = [index] if isinstance(index, int) else list(index)
    dims = [d % max(t.dim(), 1) for d in dims]
    vars(t).setdefault(name, set()).update(dims)
    t._has_dynamo_dim_marking = True
    return dims


def forbid_in_graph(fn):
    """The function, which a compiled function may not call.

    Unlike one of `disallow_in_graph`, at which graphs end, it is an error that the call
    of the compiled function raises.

    Args:
        fn: a function, or a list or tuple of functions.

    Raises:
        AssertionError: something that cannot be called.

    Example:
        >>> @taeda._dynamo.forbid_in_graph
        ... def load():
        ...     return 1
        >>> try:
        ...     taeda.compile(lambda x: x + load())(taeda.ones(1))
        ... except AssertionError as error:
        ...     print(str(error)[:45])
        compile: Attempt to trace forbidden callable
    """
    several = isinstance(fn, (list, tuple))
    for each in fn if several else (fn,):
        if not callable(each):
            raise AssertionError(
                f"forbid_in_graph applies only to callables, got {type(each).__name__}"
            )
        each._dynamo_forbidden = True
    return list(fn) if several else fn


@forbid_in_graph
def mark_dynamic(
    t, index, *, hint_override=None, min=None, max=None, specialize_on=None
) -> None:
    """Says that the size of a dim may be any: it becomes a symbol of its own.

    Args:
        t: a tensor.
        index: a dim, or a list of dims.
        hint_override: a size to optimise for in place of the tensor's own.
        min, max: the sizes that the dim may have.
        specialize_on: conditions on the size for which a graph of its own is made; not
            implemented.

    Raises:
        ConstraintViolationError: when the program is captured, if it allows one size
            only, or fewer than `min` and `max` say.
        NotImplementedError: `specialize_on` is given.

    Example:
        >>> x = taeda.ones(4, 3)
        >>> taeda._dynamo.mark_dynamic(x, 0)
    """
    if specialize_on:
        raise NotImplementedError("mark_dynamic: specialize_on is not implemented")
    for dim in _marked(t, index, "_dynamo_dynamic_indices"):
        vars(t).setdefault("_dynamo_dynamic_range", set()).add(_DimRange(dim, min, max))
        if hint_override:
            vars(t).setdefault("_dynamo_hint_overrides", {})[dim] = hint_override


@forbid_in_graph
def maybe_mark_dynamic(t, index) -> None:
    """As `mark_dynamic`, without an error where the program allows one size only.

    Args:
        t: a tensor.
        index: a dim, or a list of dims.
    """
    _marked(t, index, "_dynamo_weak_dynamic_indices")


def mark_unbacked(t, index) -> None:
    """Says that nothing is known of the size of a dim: no graph depends on its value.

    A decision about it ends the graph.

    Args:
        t: a tensor.
        index: a dim, or a list of dims.
    """
    _marked(t, index, "_dynamo_unbacked_indices")


def mark_static(t, index=None) -> None:
    """Says that the size of a dim stays what it is.

    Args:
        t: a tensor.
        index: a dim, or a list of dims; all of them by default.
    """
    _marked(t, range(t.dim()) if index is None else index, "_dynamo_static_indices")


@forbid_in_graph
def mark_static_address(t, guard: bool = False) -> None:
    """Says that a tensor stays where it is in memory.

    The tensor carries the mark, as PyTorch's do. CUDA graphs would heed it, of which
    there are none.

    Args:
        t: a tensor.
        guard: whether another tensor in its place is to be noticed.
    """
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


def graph_break(msg: str = "") -> None:
    """Ends a captured graph; code that runs eagerly passes it by."""


def disallow_in_graph(fn):
    """The function (or list of them), at each call of which a graph ends.

    Raises:
        AssertionError: something that cannot be called.
    """
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError(
            f"disallow_in_graph expects a callable, got {type(fn).__name__}"
        )
    from taeda.compiler import _marks

    _marks.ALLOWED.discard(fn)
    _marks.DISALLOWED.add(fn)
    return fn


def run(fn=None):
    """The function, of which only what was captured runs as graphs.

    Where nothing that was captured fits, it runs as it is written, and nothing is
    captured. So does what it calls. Also a decorator, as `run()`.

    Args:
        fn: what `taeda.compile` returned.

    Example:
        >>> double = taeda.compile(lambda x: x * 2)
        >>> double(taeda.ones(1)), taeda._dynamo.run(double)(taeda.ones(2))
        (tensor([2.]), tensor([2., 2.]))
    """
    from taeda.compiler._stance import set_stance

    if fn is None:
        return run
    import functools

    @functools.wraps(fn)
    def as_captured(*args, **kwargs):
        with set_stance("eager_on_recompile"):
            return fn(*args, **kwargs)

    return as_captured


def optimize(
    backend="inductor",
    *,
    nopython: bool = False,
    guard_filter_fn=None,
    disable: bool = False,
    dynamic: bool | None = None,
):
    """A decorator that compiles.

    Args:
        backend, disable, dynamic: as those of `taeda.compile`.
        nopython: its `fullgraph`.
        guard_filter_fn: its option of that name.
    """
    import taeda

    settings = {"backend": backend, "fullgraph": nopython}
    if guard_filter_fn is not None:
        settings["options"] = {"guard_filter_fn": guard_filter_fn}
    return taeda.compile(disable=disable, dynamic=dynamic, **settings)
