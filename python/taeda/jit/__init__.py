"""TorchScript: what eager programs use of it; scripting itself is not implemented.

The markers (`export`, `ignore`, `unused`, `interface`, `annotate`, `is_scripting`) mean
nothing to code that runs as Python, by PyTorch's own definition. `script` and `trace`
refuse. With PYTORCH_JIT=0 in the environment when this module is first imported they
return what they are given, which is how PyTorch defines that mode.
"""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from taeda._lazy import attributes
from taeda.futures import Future
from taeda.nn import Module

from ._types import has_type as isinstance

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
__getattr__ = attributes(__name__, submodules=("annotations",))
# Read once, as PyTorch does; nothing changes it.
_enabled = os.environ.get("PYTORCH_JIT", "1") != "0"


def _refusal(name: str, what: str) -> NotImplementedError:
    return NotImplementedError(
        f"jit.{name}: {what}: TorchScript is not implemented. PYTORCH_JIT=0 in the "
        "environment runs scripted and traced code as Python"
    )


class TracerWarning(Warning):
    """What a tracer would have to say: a filter for it catches nothing here."""


class Error(Exception):
    """What running scripted code raises, for programs that catch it."""


JITException = Error


class ScriptFunction:
    """What `script` makes of a function: it says at its first call that it cannot run.

    Libraries script functions while they are imported, whether or not a program calls
    them.

    Raises:
        NotImplementedError: when it is called.
    """

    def __init__(self, function) -> None:
        from functools import update_wrapper

        update_wrapper(self, function)

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.__name__

    @property
    def qualified_name(self) -> str:
        """The same behind its modules."""
        return f"__torch__.{self.__module__}.{self.__qualname__}"

    @property
    def schema(self):
        """Its arguments and results by the annotations; ValueError where one is none
        of TorchScript's types."""
        from taeda._infer_schema import infer_schema
        from taeda._schema import Schema

        function = self.__wrapped__
        return Schema(infer_schema(function, mutates_args=(), op_name=self.name))

    def __call__(self, *args, **kwargs):
        raise _refusal("script", f"cannot call {self.__module__}.{self.__qualname__}")


class ScriptModule(Module):
    """Base class of modules whose methods are scripted.

    Raises:
        NotImplementedError: one is made, but with PYTORCH_JIT=0.
    """

    def __init__(self, *args, **kwargs) -> None:
        if _enabled:
            raise _refusal("ScriptModule", f"cannot make a {type(self).__name__}")
        super().__init__()


class RecursiveScriptModule(ScriptModule):
    """What scripting a Module would give."""


class Attribute(NamedTuple):
    """A value with the type that scripting would give it."""

    value: Any
    type: Any


def is_scripting() -> bool:
    """Whether this code runs as TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether this code is being traced: never."""
    return False


def script(obj, optimize=None, _frames_up: int = 0, _rcb=None, example_inputs=None):
    """Compile a function or module to TorchScript; not implemented.

    Args:
        obj: a function gives a ScriptFunction, which refuses its first call. A class
            is returned, as PyTorch returns it: only scripted code sees its script.

    Raises:
        NotImplementedError: anything else, at once.

    Example:
        >>> type(taeda.jit.script(lambda x: x + 1)).__name__
        'ScriptFunction'
    """
    import builtins

    if not _enabled or builtins.isinstance(obj, ScriptFunction):
        return obj
    if builtins.isinstance(obj, type):
        return obj
    if builtins.isinstance(obj, Module) or not callable(obj):
        raise _refusal("script", f"cannot script {_described(obj)}")
    return ScriptFunction(obj)


def trace(func, example_inputs=None, *args, **kwargs):
    """Record a function's or module's calls as TorchScript.

    Raises:
        NotImplementedError: always, but with PYTORCH_JIT=0.
    """
    if _enabled:
        raise _refusal("trace", f"cannot trace {_described(func)}")
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """Record calls of several methods of a module as TorchScript.

    Raises:
        NotImplementedError: always, but with PYTORCH_JIT=0.
    """
    if _enabled:
        raise _refusal("trace_module", f"cannot trace {_described(mod)}")
    return mod


def _described(obj) -> str:
    return getattr(obj, "__qualname__", type(obj).__qualname__)


def _no_script_module(name: str, given) -> NotImplementedError:
    return NotImplementedError(
        f"jit.{name} expects a ScriptModule, got {type(given).__name__}: TorchScript "
        "is not implemented"
    )


def freeze(mod, preserved_attrs=None, optimize_numerics: bool = True):
    """Takes a ScriptModule, of which there are none.

    Raises:
        NotImplementedError: always.
    """
    raise _no_script_module("freeze", mod)


def optimize_for_inference(mod, other_methods=None):
    """Takes a ScriptModule, of which there are none.

    Raises:
        NotImplementedError: always.
    """
    raise _no_script_module("optimize_for_inference", mod)


def save(m, f, _extra_files=None):
    """Takes a ScriptModule, of which there are none.

    Raises:
        NotImplementedError: always.
    """
    raise _no_script_module("save", m)


def load(f, map_location=None, _extra_files=None, _restore_shapes: bool = False):
    """Reads a scripted module.

    Raises:
        NotImplementedError: always.
    """
    raise _refusal("load", f"cannot read {f}")


def _unmarked(fn):
    """The function or class: a mark for scripting, which running code never sees."""
    return fn


def interface(obj):
    """The class: a mark for scripting, which running code never sees."""
    return obj


export = script_method = script_if_tracing = unused = _unmarked
_overload = _overload_method = _script_if_tracing = _unmarked


def ignore(drop=False, **kwargs):
    """Keeps a method out of scripting; with or without arguments."""
    return drop if callable(drop) else _unmarked


def annotate(the_type, the_value):
    """The value; the type is for scripting alone."""
    return the_value


def fork(func, *args, **kwargs) -> Future:
    """A future that holds the function's result, computed at once as in eager PyTorch.

    Example:
        >>> taeda.jit.wait(taeda.jit.fork(max, 3, 4))
        4
    """
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future):
    """The result of a future."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
