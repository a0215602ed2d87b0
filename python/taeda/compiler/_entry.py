"""Compiled functions, methods, modules and other callables."""

from __future__ import annotations

import functools
import types
from importlib.util import find_spec

from . import _backends, _marks

__all__ = ["prepare"]


def prepare(model, **settings):
    """What `taeda.compile` returns for a callable, by the settings that it was given.

    Raises:
        As `_backends.choose`.
        NotImplementedError: this Python's frames are not known, and the program asks
            for more than to be run.
    """
    if isinstance(model, _module_class()):
        from taeda._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model, settings)
    return call_of(model, **settings)


def call_of(
    model,
    *,
    backend=None,
    mode=None,
    options=None,
    fullgraph=False,
    dynamic=None,
    disable=None,
    recompile_limit=None,
    name=None,
):
    """As `prepare`; of a module, what its compiled form calls.

    With `disable`, the arguments of `_marks.disabled`: one that is never captured.
    """
    if disable:
        return _marks.disabled(model.__call__, *disable)
    options = dict(options or {})
    kept_guards = options.pop("guard_filter_fn", None)
    chosen = _backends.choose(backend, mode, options)
    if find_spec("taeda._capture") is None:
        return _without_capture(model, chosen, fullgraph)
    asked = {"fullgraph": fullgraph, "backend": chosen, "dynamic": dynamic}
    asked |= {"guard_filter": kept_guards, "recompile_limit": recompile_limit}
    asked["name"] = name
    if isinstance(model, _module_class()):
        return _bound(model, asked)
    if isinstance(model, type):
        return _with_compiled_calls(model, asked)
    return _callable(model, asked)


def _module_class():
    from taeda.nn import Module

    return Module


def _bound(instance, asked):
    """A compiled `instance.__call__`, by the arguments of `capture` that were asked."""
    from ._frames import capture

    function = type(instance).__call__
    return types.MethodType(capture(function, **asked), instance)


def _callable(model, asked):
    from ._frames import capture

    # Of what is compiled already, the function: one graph is enough.
    model = _marks.original(model)
    if isinstance(model, types.FunctionType):
        return capture(model, **asked)
    if isinstance(model, types.MethodType) and isinstance(
        model.__func__, types.FunctionType
    ):
        made = capture(model.__func__, **asked)
        return types.MethodType(made, model.__self__)
    if isinstance(type(model).__call__, types.FunctionType):
        made = _bound(model, asked)
    else:
        made = capture(_calls(model), **asked)
        functools.update_wrapper(made, model)
        made._torchdynamo_orig_callable = model
    return made


def _calls(model):
    """A Python function that calls something else."""

    def call(*args, **kwargs):
        return model(*args, **kwargs)

    return call


def _with_compiled_calls(cls, asked):
    """A class whose instances are captured when they are called."""
    from ._frames import capture

    name = "_call_impl" if issubclass(cls, _module_class()) else "__call__"
    function = getattr(cls, name, None)
    if isinstance(function, types.FunctionType):
        setattr(cls, name, capture(function, **asked))
    return cls


def _without_capture(model, chosen, fullgraph):
    """The program as it is written, where nothing else was asked for."""
    import sys
    import warnings

    version = ".".join(map(str, sys.version_info[:2]))
    if chosen is not None or fullgraph:
        raise NotImplementedError(
            f"compile: no graph is captured under Python {version}, so that no "
            "backend gets one and fullgraph cannot be told"
        )
    warnings.warn(
        f"compile: no graph is captured under Python {version}; the program runs as "
        "it is written",
        stacklevel=4,
    )
    return model
