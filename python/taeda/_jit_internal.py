"""What libraries take from PyTorch's `torch._jit_internal`.

Marks for TorchScript mean nothing to code that runs as Python (`taeda.jit`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final

from taeda.futures import Future
from taeda.jit import (
    _unmarked,
    export,
    ignore,
    is_scripting,
    unused,
)
from taeda.jit.annotations import (  # noqa: F401 (libraries take them from here)
    Any,
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
    Dict,
    List,
    Optional,
    Tuple,
    Union,
)

__all__ = [
    "Final",
    "Future",
    "boolean_dispatch",
    "export",
    "get_callable_argument_names",
    "ignore",
    "is_scripting",
    "unused",
]
_copy_to_script_wrapper = _drop = _unmarked


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable,
    if_false: Callable,
    module_name: str | None,
    func_name: str | None,
) -> Callable:
    """A function that calls one of two, by its argument `arg_name`.

    Args:
        arg_name, arg_index: by which name and at which position it is given.
        default: where it is not given.
        module_name, func_name: what the function says it is; None for its own.
    """

    def fn(*args, **kwargs):
        given = args[arg_index] if arg_index < len(args) else default
        return (if_true if kwargs.get(arg_name, given) else if_false)(*args, **kwargs)

    documented = [f.__doc__ for f in (if_true, if_false) if f.__doc__ is not None]
    if len(documented) == 1:
        fn.__doc__ = documented[0]
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


def get_callable_argument_names(fn: Callable) -> list[str]:
    """Names of arguments that may be given by position and by name."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


def _qualified_name(obj, mangle_name: bool = True) -> str:
    """`__torch__.module.Name`, by which TorchScript knows an object; the module alone
    without `mangle_name`.

    Raises:
        RuntimeError: the object has no name or module.
    """
    name = getattr(obj, "_jit_override_qualname", None)
    if name is not None:
        return name
    name = getattr(obj, "__name__", None)
    module = getattr(obj, "__module__", None)
    if name is None or module is None:
        raise RuntimeError(f"Could not get name of python class object: {obj!r}")
    if name == "<lambda>":
        name = "_lambda"
    if "." in name:
        raise RuntimeError(f"{name!r} is not a qualified name that TorchScript has")
    if not mangle_name:
        return f"{module}.{name}"
    return f"__torch__.{name}" if module == "__main__" else f"__torch__.{module}.{name}"
