"""Controls of `compile`: what is captured, when, and what stays as it is written."""

from __future__ import annotations

import contextlib
import sys
import threading

from taeda._compile import compile
from taeda._lazy import attributes

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]
__getattr__ = attributes(
    __name__,
    {
        "get_default_backend": "_backends",
        "keep_portable_guards_unsafe": "_filters",
        "keep_tensor_guards_unsafe": "_filters",
        "load_cache_artifacts": "_artifacts",
        "save_cache_artifacts": "_artifacts",
        "set_default_backend": "_backends",
        "set_enable_guard_collectives": "_guards",
        "set_stance": "_stance",
        "skip_all_guards_unsafe": "_filters",
        "skip_guard_on_all_nn_modules_unsafe": "_filters",
        "skip_guard_on_globals_unsafe": "_filters",
        "skip_guard_on_inbuilt_nn_modules_unsafe": "_filters",
    },
    ("config",),
)


def is_compiling() -> bool:
    """Whether a graph is being captured, or a program exported, by this thread.

    What is captured takes the branch of True; code that runs as it is written, after a
    graph break too, that of False.

    Example:
        >>> taeda.compiler.is_compiling()
        False
    """
    capture = sys.modules.get("taeda._capture")
    captured = capture is not None and capture.is_capturing()
    return captured or _state.exporting


def is_dynamo_compiling() -> bool:
    """Whether a graph is being captured by this thread from bytecode."""
    return is_compiling() and not _state.exporting


class _State(threading.local):
    exporting = False  # whether this thread exports a program


_state = _State()


@contextlib.contextmanager
def _exporting():
    """Inside, a program of this thread is being exported."""
    before, _state.exporting = _state.exporting, True
    try:
        yield
    finally:
        _state.exporting = before


def is_exporting() -> bool:
    """Whether this thread is exporting a program."""
    return _state.exporting


def reset() -> None:
    """Forgets what was compiled: later calls capture and compile anew."""
    capture = sys.modules.get("taeda._capture")
    if capture is not None:
        capture.configure("generation", 1)
        sys.modules["taeda.compiler._frames"]._SHARED.clear()
    backward = sys.modules.get("taeda._dynamo.compiled_autograd")
    if backward is not None:
        backward.reset()


def cudagraph_mark_step_begin() -> None:
    """Marks where an iteration starts, for CUDA graphs, of which there are none."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """Names of the compiler's backends, those of installed packages among them.

    Args:
        exclude_tags: kinds to leave out; None or () leaves out none.

    Example:
        >>> taeda.compiler.list_backends()
        ['inductor']
    """
    from . import _backends

    return _backends.list_backends(exclude_tags)


def _callable(fn, what: str):
    if not callable(fn):
        raise AssertionError(f"{what} expects a callable, got {type(fn).__name__}")
    return fn


def disable(fn=None, recursive: bool = True, *, reason: str | None = None):
    """A function that calls another, which no graph will hold.

    A graph that meets it ends there, and another begins after it.

    Args:
        fn: a function; a module, of which an OptimizedModule is made; a class, whose
            `__init__` and `__call__` are replaced. Without it, a decorator is returned.
        recursive: kept as an attribute. What the function calls is not captured either
            way, but for functions that were compiled themselves.
        reason: said where a graph ends.

    Raises:
        AssertionError: something that cannot be called.

    Example:
        >>> @taeda.compiler.disable
        ... def show(x):
        ...     print(x.sum().item())
        >>> show(taeda.ones(2))
        2.0
    """
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    _callable(fn, "disable")
    from ._marks import disabled

    if isinstance(fn, type):
        for name in ("__init__", "__call__"):
            if name in vars(fn):
                setattr(fn, name, disabled(vars(fn)[name], recursive, reason))
        return fn
    from taeda.nn import Module

    if isinstance(fn, Module):
        from taeda._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(fn, {"disable": (recursive, reason)})
    return disabled(fn, recursive, reason)


def allow_in_graph(fn):
    """The function (or list of them), which graphs will hold as one call.

    It is called once with tensors without memory while a graph is captured, to tell
    what it returns, and must not look at their values.

    Raises:
        AssertionError: something that cannot be called.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    _callable(fn, "allow_in_graph")
    from . import _marks

    _marks.DISALLOWED.discard(fn)
    _marks.ALLOWED.add(fn)
    return fn


def assume_constant_result(fn):
    """The function, whose result graphs will take for a constant.

    It is called where capture meets it, and not again as long as the graph fits.
    """
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
):
    """A decorator of a function that capture follows in place of another.

    Args:
        original_fn: a function, often one in C.
        can_constant_fold_through: accepted; calls of values are always constants.
        skip_signature_check: whether the two may take different arguments.

    Raises:
        TypeError: they do take different arguments; something cannot be called.
        ValueError: there is a substitute already.

    Example:
        >>> import operator
        >>> @taeda.compiler.substitute_in_graph(operator.indexOf)
        ... def index_of(a, b, /):
        ...     return next(i for i, x in enumerate(a) if x is b or x == b)
    """
    if not callable(original_fn):
        raise TypeError(
            "substitute_in_graph expects a function but got "
            f"{type(original_fn).__name__}"
        )

    def add(polyfill):
        from . import _marks

        if not callable(polyfill):
            raise TypeError(
                "substitute_in_graph expects a function but got "
                f"{type(polyfill).__name__}"
            )
        if not skip_signature_check:
            _marks.check_substitute(original_fn, polyfill)
        if original_fn in _marks.SUBSTITUTES:
            raise ValueError(
                f"substitute_in_graph: Duplicate dispatch rule for {original_fn}: "
                f"{_marks.SUBSTITUTES[original_fn]}"
            )
        _marks.SUBSTITUTES[original_fn] = polyfill
        return polyfill

    return add


def nested_compile_region(
    fn=None, *, options=None, max_reuse_entries: int = 8, reuse_hash_fn=None
):
    """A function of which a model has many equal calls, such as its layers.

    Equal parts of graphs are compiled once here whether they are marked or not, so that
    the mark changes nothing but what the function is called.

    Args:
        fn: the function; without it, a decorator is returned.
        options: NotImplementedError where given: other settings for such calls.
        max_reuse_entries, reuse_hash_fn: accepted; nothing is kept for the calls.

    Raises:
        AssertionError: something that cannot be called.

    Example:
        >>> @taeda.compiler.nested_compile_region
        ... def layer(x):
        ...     return x.sin() * 2
        >>> layer(layer(taeda.zeros(2)))  # in a model that is compiled
        tensor([0., 0.])
    """
    if options is not None:
        raise NotImplementedError("nested_compile_region: options are not there yet")
    if fn is None:
        return nested_compile_region
    from functools import wraps

    @wraps(_callable(fn, "nested_compile_region"))
    def region(*args, **kwargs):
        return fn(*args, **kwargs)

    return region


def wrap_numpy(fn):
    """A function of tensors made of one of NumPy arrays.

    Args:
        fn: takes and returns arrays, alone or in tuples, lists and dicts.

    Returns:
        A function that takes and returns CPU tensors in their places.

    Example:
        >>> taeda.compiler.wrap_numpy(lambda a: a.sum(0))(taeda.ones(3, 2))
        tensor([3., 3.])
    """
    from functools import wraps

    @wraps(fn)
    def with_tensors(*args, **kwargs):
        import numpy

        import taeda
        from taeda.utils._pytree import tree_map_only

        args, kwargs = tree_map_only(taeda.Tensor, lambda t: t.numpy(), (args, kwargs))
        return tree_map_only(numpy.ndarray, taeda.as_tensor, fn(*args, **kwargs))

    return with_tensors
