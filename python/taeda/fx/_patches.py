"""What tracing puts in place of functions, and how it is taken back.

Three things are exchanged while a trace runs: `Module.__call__` and
`Module.__getattr__`, and the global names that `wrap` lists or a tracer wraps by
itself. The first two ask for the trace of their own thread (`_here`), so a module that
another thread runs meanwhile works as always; they stay in place while any thread
traces, which a lock counts. Wrapped functions record only where an argument is a proxy.
"""

from __future__ import annotations

import builtins
import functools
import threading

from taeda import nn

from .graph_module import GENERATED
from .node import map_aggregate
from .proxy import Proxy

__all__ = ["is_tracing", "tracing"]

_orig_module_call = nn.Module.__call__
_orig_module_getattr = nn.Module.__getattr__

# (id of a namespace, name) -> the namespace; grows by `wrap`, as modules are imported.
_wrapped_fns_to_patch: dict[tuple[int, str], dict] = {}

_here = threading.local()  # `traces`: those that this thread runs, the innermost last
_lock = threading.Lock()  # guards `_patched` and the two methods of Module
_patched = 0


def _trace():
    traces = getattr(_here, "traces", None)
    return traces[-1] if traces else None


def is_tracing() -> bool:
    """Whether this thread traces a program."""
    return _trace() is not None


# What a graph of the compiler captures is not traced: it asks once.
is_tracing._dynamo_marked_constant = True


@functools.wraps(_orig_module_call)
def _call(module, *args, **kwargs):
    trace = _trace()
    if trace is None:
        return _orig_module_call(module, *args, **kwargs)
    return trace.call_module(module, args, kwargs)


@functools.wraps(_orig_module_getattr)
def _read(module, name):
    found, trace = _orig_module_getattr(module, name), _trace()
    return found if trace is None else trace.read(name, found)


def _count(step: int) -> None:
    global _patched
    with _lock:
        _patched += step
        if _patched == 1 and step == 1:
            nn.Module.__call__, nn.Module.__getattr__ = _call, _read
        elif _patched == 0:
            del nn.Module.__call__
            nn.Module.__getattr__ = _orig_module_getattr


class tracing:
    """A context in which a tracer sees modules and wrapped functions.

    Args:
        tracer: gets the calls of modules and the reads of their parameters.
    """

    def __init__(self, tracer) -> None:
        self.tracer, self.proxies = tracer, {}
        self.seen: set[int] = set()
        self.undo: list = []

    def __enter__(self):
        self.traces = _here.__dict__.setdefault("traces", [])
        self.traces.append(self)
        _count(1)
        for (_, name), space in list(_wrapped_fns_to_patch.items()):
            self.replace(space, name)
        for module in self.tracer._autowrap_search:
            self.visit(vars(module))
        return self

    def __exit__(self, *exception) -> None:
        for space, name, before in reversed(self.undo):
            if before is None:
                del space[name]
            else:
                space[name] = before
        _count(-1)
        self.traces.remove(self)

    def replace(self, space: dict, name: str) -> None:
        """Puts a recording function in the place of a global or builtin."""
        before = space.get(name)
        function = before or getattr(builtins, name)
        if not hasattr(function, "_fx_wraps"):
            self.undo.append((space, name, before))
            space[name] = _recording(function)

    def visit(self, space: dict) -> None:
        """Wraps what a namespace has of functions to be wrapped; each is seen once."""
        if id(space) in self.seen:
            return
        self.seen.add(id(space))
        chosen = self.tracer._autowrap_function_ids
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in chosen:
                self.replace(space, name)
        for name in space.get(GENERATED, ()):
            self.replace(space, name)

    def call_module(self, module, args, kwargs):
        """A module is called: the tracer decides what that means."""

        def forward(*args, **kwargs):
            return _orig_module_call(module, *args, **kwargs)

        function = getattr(module, "forward", module)
        self.visit(getattr(function, "__globals__", {}))
        return self.tracer.call_module(module, forward, args, kwargs)

    def read(self, name: str, value):
        """An attribute of a module is read."""
        return self.tracer.getattr(name, value, self.proxies)


def _recording(function):
    @functools.wraps(function)
    def recorded(*args, **kwargs):
        found: list[Proxy] = []
        map_aggregate(
            (args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None
        )
        if not found:
            return function(*args, **kwargs)
        proxy = found[-1].tracer.create_proxy("call_function", function, args, kwargs)
        proxy.node.meta["is_wrapped"] = True
        return proxy

    recorded._fx_wraps = function
    return recorded
