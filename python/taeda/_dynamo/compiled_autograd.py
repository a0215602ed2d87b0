"""Compiled autograd: backward passes captured whole, and compiled.

A pass is captured where it begins, at `backward()` or `autograd.grad`, so that the
backward of several graphs and of what ran eagerly between them is one graph, with the
gradients that its leaves get. Hooks and nodes whose backward is a Python function are
called between graphs. `taeda._dynamo.config.compiled_autograd = True` does this inside
of compiled functions.
"""

from __future__ import annotations

import contextlib
import threading

from taeda._compiler import exchange_passes
from taeda.compiler import _passes

__all__ = ["reset"]


class _State(threading.local):
    depth = 0  # how many `_enable` are open
    disabled = 0  # how many `_disable` are
    forced_eager = False
    in_region = False


_state = _State()


def __getattr__(name: str):
    if name == "compiled_autograd_enabled":
        return _state.depth > 0 and not _state.disabled
    if name == "compiled_autograd_enabled_force_eager":
        return _state.forced_eager
    if name == "in_compiled_autograd_region":
        return _state.in_region
    if name == "active_disable_ctx":
        return _state.disabled > 0
    if name == "depth":
        return _state.depth
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextlib.contextmanager
def _running():
    """Inside, a graph of a backward pass runs."""
    before, _state.in_region = _state.in_region, True
    try:
        yield
    finally:
        _state.in_region = before


@contextlib.contextmanager
def _forcing_eager():
    _state.forced_eager = True
    try:
        yield
    finally:
        _state.forced_eager = False


@contextlib.contextmanager
def _enable(compiler_fn, dynamic: bool = True, ignore_active_disable_ctx: bool = True):
    """Inside, this thread's backward passes are captured and compiled.

    Args:
        compiler_fn: called with an `fx.GraphModule` for each graph; returns what is
            called as `(inputs, sizes, scalars, hooks, packed_data)` and returns the
            graph's results. `inputs` are tensors, `sizes` numbers. None: the default
            backend runs the graphs.
        dynamic: whether sizes are symbols from the first pass on; else those that
            differ later.
        ignore_active_disable_ctx: False: nothing is done inside of `_disable`.

    Example:
        >>> from taeda._dynamo import compiled_autograd
        >>> w = taeda.ones(3, requires_grad=True)
        >>> with compiled_autograd._enable(lambda gm: gm):
        ...     (w * 2).sum().backward()
        >>> w.grad
        tensor([2., 2., 2.])
    """
    if type(dynamic) is not bool:
        raise AssertionError(f"Expected dynamic to be bool, got {type(dynamic)}")
    with _entered(_passes.passes_for(compiler_fn, dynamic), ignore_active_disable_ctx):
        yield


@contextlib.contextmanager
def _entered(passes, ignore_active_disable_ctx: bool):
    from taeda.compiler import _stance

    if not ignore_active_disable_ctx and _state.disabled:
        yield
        return
    if _stance.forces_eager():
        with _forcing_eager():
            yield
        return
    before = exchange_passes(passes)
    _state.depth += 1
    try:
        yield
    finally:
        exchange_passes(before)
        _state.depth -= 1


@contextlib.contextmanager
def _disable():
    """Inside, this thread's backward passes are the engine's."""
    before = exchange_passes(None)
    _state.disabled += 1
    try:
        yield
    finally:
        _state.disabled -= 1
        exchange_passes(before)


def reset() -> None:
    """Forgets what was captured; the calling thread's passes are the engine's again.

    Raises:
        AssertionError: called while a captured graph runs.
    """
    if _state.in_region:
        raise AssertionError("Cannot reset while in_compiled_autograd_region is True")
    exchange_passes(None)
    _state.depth = 0
    for plans in _passes.PLANS.values():
        plans.clear()
