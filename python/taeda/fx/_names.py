"""Names: unique ones in a scope, and those by which functions and types are known."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import types

import taeda
from taeda._own import is_own_module, without_library

__all__ = [
    "Namespace",
    "attribute",
    "is_own",
    "known_globals",
    "qualified_name",
    "snake_case",
    "type_text",
]

_NOT_IN_NAMES = re.compile(r"\W+", re.ASCII)
_NUMBERED = re.compile(r"(.+?)_(\d+)", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def known_globals() -> dict[str, tuple[str, object]]:
    """Names that every generated function sees: how to import each, and the object."""
    from taeda.utils import _pytree

    from . import _pytree as fx_pytree

    library = taeda.__name__
    return {
        "inf": ("from math import inf", math.inf),
        "nan": ("from math import nan", math.nan),
        "NoneType": ("NoneType = type(None)", type(None)),
        library: (f"import {library}", taeda),
        "device": (f"from {library} import device", taeda.device),
        "fx_pytree": (f"import {library}.fx._pytree as fx_pytree", fx_pytree),
        "pytree": (f"import {library}.utils._pytree as pytree", _pytree),
    }


def snake_case(name: str) -> str:
    """`pascalCase` as `pascal_case`."""
    return _HUMP.sub("_", name).lower()


class Namespace:
    """Gives every object one name and no name twice.

    A name is a valid identifier and hides no keyword, builtin or known global, unless
    it is the name of that very object.
    """

    def __init__(self) -> None:
        self._names: dict = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def create_name(self, candidate: str, obj=None) -> str:
        """A name like the candidate; the name that `obj` has already, where it has one.

        Names are numbered where the candidate is taken: `add`, `add_1`, `add_2`.
        """
        if obj is not None and obj in self._names:
            return self._names[obj]
        name = _NOT_IN_NAMES.sub("_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        numbered = _NUMBERED.fullmatch(name)
        base, number = numbered.groups() if numbered else (name, None)
        if number is None or name in self._taken:
            last = self._last.get(base, 0)
            if _is_reserved(name, obj):
                last += 1
                name = f"{base}_{last}"
        else:
            last = int(number)
        while name in self._taken:
            last += 1
            name = f"{base}_{last}"
        self._taken.add(name)
        self._last[base] = last
        if obj is not None:
            self._names[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj) -> None:
        """Notes that a name made before belongs to an object."""
        self._names[obj] = name
        self._taken.add(name)


# Filled once with equal values, whoever comes first.
_reserved: dict[str, object] = {}


def _is_reserved(name: str, obj) -> bool:
    if not _reserved:
        table = dict.fromkeys(keyword.kwlist, Namespace)
        table.update(vars(builtins))
        table.update((n, known) for n, (_, known) in known_globals().items())
        _reserved.update(table)
    return name in _reserved and _reserved[name] is not obj


def attribute(base: str, path: str) -> str:
    """The expression of a dotted path below an expression."""
    for part in path.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _library_path(module: str) -> str:
    """A module of this library under the name that the library goes by."""
    root, dot, rest = module.partition(".")
    rest = "ops" + rest[4:] if rest == "_ops" or rest.startswith("_ops.") else rest
    return f"{taeda.__name__}{dot}{rest}" if root in ("taeda", "torch") else module


def is_own(obj) -> bool:
    """Whether generated code may name an object by its path in this library."""
    if isinstance(obj, types.ModuleType):
        return False
    module = getattr(obj, "__module__", None)
    if module is not None:
        return is_own_module(module)
    name = getattr(obj, "__name__", None)
    spaces = (taeda, taeda.nn.functional)
    return name is not None and any(getattr(s, name, None) is obj for s in spaces)


def qualified_name(func) -> str:
    """The path of a function: `getattr`, `taeda.relu`, `_operator.add`.

    Raises:
        RuntimeError: no module is known, or it is a lambda whose source is not there.
    """
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if getattr(taeda.Tensor, name, None) is func:
        return f"{taeda.__name__}.Tensor.{name}"
    if name == "<lambda>":
        name = _lambda_name(func)
    module = func.__module__
    if module is None:
        spaces = {"": taeda, ".nn.functional": taeda.nn.functional}
        found = [s for s, place in spaces.items() if getattr(place, name, None) is func]
        if not found:
            raise RuntimeError(f"cannot find module for {func}")
        module = f"taeda{found[0]}"
    elif without_library(module)[:1] == "_" and getattr(taeda, name, None) is func:
        module = "taeda"
    return f"{_library_path(module)}.{name}"


def _lambda_name(func) -> str:
    import inspect

    try:
        return inspect.getsource(func).split("=")[0].strip()
    except (OSError, TypeError) as error:
        raise RuntimeError("Unable to represent lambda") from error


def type_text(obj) -> str:
    """A type as an annotation shows it."""
    match obj:
        case types.GenericAlias():  # which counts as a type too
            return repr(obj)
        case type(__module__="builtins"):
            return obj.__qualname__
        case type():
            return f"{_library_path(obj.__module__)}.{obj.__qualname__}"
        case types.FunctionType():
            return obj.__name__
    return "..." if obj is ... else repr(obj)
