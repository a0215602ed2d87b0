"""Compiled functions, methods, modules and other callables."""

from __future__ import annotations

import functools
import re
import types
from importlib.util import find_spec

from taeda._own import is_own_module

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
    isolate_recompiles=False,
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
    return _callable(model, asked, share=not isolate_recompiles)


def _module_class():
    from taeda.nn import Module

    return Module


def _bound(instance, asked):
    """A compiled `instance.__call__`, by the arguments of `capture` that were asked."""
    from ._frames import capture

    function = type(instance).__call__
    made = capture(function, **asked, place_of=_places_of(instance))
    return types.MethodType(made, instance)


def _places_of(instance):
    """Names of the places of `forward`, which a module's `__call__` hands on.

    Backends get them as if a graph began in the program's own `forward`. Of a module of
    the library, which is a function like any other then, it is called `fn`.
    """
    forward = getattr(type(instance), "forward", None)
    if not isinstance(instance, _module_class()):
        return None
    if not isinstance(forward, types.FunctionType) or is_own_module(forward.__module__):
        return lambda place: re.sub(r"^L\['self'\]", "L['fn']", place)
    code = forward.__code__
    names = code.co_varnames[1 : code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][:1]

    def place_of(place: str) -> str:
        place = re.sub(r"^L\['kwargs'\]\['(\w+)'\]", r"L['\1']", place)
        found = re.match(r"L\['args'\]\[(\d+)\]", place)
        if not found:
            return place
        at = int(found[1])
        if at < len(names):
            return f"L['{names[at]}']{place[found.end() :]}"
        name = rest[0] if rest else "args"
        return f"L['{name}'][{at - len(names)}]{place[found.end() :]}"

    return place_of


def _callable(model, asked, share):
    from ._frames import capture

    # Of what is compiled already, the function: one graph is enough.
    model = _marks.original(model)
    if isinstance(model, types.FunctionType):
        return capture(model, **asked, share=share)
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
