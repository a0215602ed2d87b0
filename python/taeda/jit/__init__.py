"""Scripting, switched off: functions and modules stay Python.

PyTorch documents this mode (`PYTORCH_JIT=0`): `script` and `trace` return what they are
given, the markers do nothing, and programs compute the same results.
"""

from __future__ import annotations

from typing import Any, Final

from taeda._absent import absent_function
from taeda.nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Final",
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
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class ScriptModule(Module):
    """Base class of scripted modules; a plain Module while scripting is off."""


class RecursiveScriptModule(ScriptModule):
    """What scripting a Module gives; no instances while scripting is off."""


class ScriptFunction:
    """What scripting a function gives; no instances while scripting is off."""


class CompilationUnit:
    """Source text of TorchScript.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, *args, **kwargs) -> None:
        raise NotImplementedError("jit.CompilationUnit: TorchScript is not supported")


class Attribute:
    """A value with the type that scripting should give it.

    Args:
        value: the value.
        type: its type.
    """

    def __new__(cls, value: Any, type: Any) -> Any:
        return value


def is_scripting() -> bool:
    """Whether this code runs as TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether this code is being traced: never."""
    return False


def script(obj, optimize=None, _frames_up: int = 0, _rcb=None, example_inputs=None):
    """The function, class or module itself."""
    return obj


def trace(func, example_inputs=None, *args, **kwargs):
    """The function or module itself."""
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """The module itself."""
    return mod


def freeze(mod, preserved_attrs=None, optimize_numerics: bool = True):
    """The module itself."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The module itself."""
    return mod


def _itself(fn):
    """The function (or class) itself."""
    return fn


export = interface = script_method = script_if_tracing = unused = _itself


def ignore(drop=False, **kwargs):
    """Keeps a method out of scripting; with or without arguments."""
    return drop if callable(drop) else _itself


def annotate(the_type, the_value):
    """The value; the type is for scripting alone."""
    return the_value


def isinstance(obj, target_type) -> bool:
    """Whether an object is of a type; parameters, as of List[int], are not read."""
    import builtins
    from typing import get_origin

    listed = builtins.isinstance(target_type, tuple)
    targets = target_type if listed else (target_type,)
    return builtins.isinstance(obj, tuple(get_origin(t) or t for t in targets))


def fork(func, *args, **kwargs):
    """A future that holds the function's result, computed at once."""
    from concurrent.futures import Future

    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


class TracerWarning(Warning):
    """A trace may not hold for other inputs; nothing is traced."""


_overload = _overload_method = _itself
_get_trace_graph = absent_function("jit._get_trace_graph")


def wait(future):
    """The result of a future."""
    return future.result()


def set_fusion_strategy(strategy: list) -> list:
    """Sets how scripted code is fused; there is none."""
    return []


class _Nothing:
    """A context that changes nothing."""

    def __init__(self, *args) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error) -> None:
        return None


optimized_execution = strict_fusion = _Nothing


def save(m, f, _extra_files=None) -> None:
    """Writes a scripted module.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("jit.save: TorchScript is not supported; use save")


def load(f, map_location=None, _extra_files=None, _restore_shapes: bool = False):
    """Reads a scripted module.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("jit.load: TorchScript is not supported")
