"""Names that exist for programs written for PyTorch, and for nothing else.

Python asks this package for a name that a module does not have (`taeda._lazy`), and for
a module that has no file (`find_spec`). Both are made of `table`: placeholders for what
is not implemented, and modules of devices that are not there.
"""

from __future__ import annotations

from functools import cache

import taeda

__all__ = ["absent_class", "absent_function", "find_spec", "placeholder"]


def absent_function(name: str):
    """A function that raises NotImplementedError with its full name."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{name} is not implemented")

    module, _, short = name.rpartition(".")
    refuse.__name__ = refuse.__qualname__ = short
    refuse.__module__ = f"{taeda.__name__}.{module}".rstrip(".")
    refuse.__doc__ = "Not there yet; raises NotImplementedError."
    return refuse


def absent_class(name: str, *bases: type) -> type:
    """A class of which no instance can be made; isinstance answers False."""

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"{name} is not implemented")

    module, _, short = name.rpartition(".")
    space = {
        "__init__": refuse,
        "__module__": f"{taeda.__name__}.{module}".rstrip("."),
        "__doc__": "Not there yet; making one raises NotImplementedError.",
    }
    return type(short, bases or (object,), space)


@cache
def entries(module: str) -> dict[str, str]:
    """The table's line of a module of ours: name -> entry."""
    from .table import TABLE

    line = TABLE.get(module.removeprefix("taeda").removeprefix("."), "")
    return {entry.partition("(")[0].partition("=")[0]: entry for entry in line.split()}


def placeholder(module: str, name: str):
    """The placeholder of this name in a module of ours; None where there is none.

    Args:
        module: its full name, "taeda.fx".
        name: an attribute that it does not have.
    """
    path = f"{module}.{name}".removeprefix("taeda.")
    entry = entries(module).get(name)
    if entry is None:
        return _module(path) if find_spec(f"taeda.{path}") else None
    if "=" in entry:
        return getattr(_module(entry.partition("=")[2]), name)
    if "(" not in entry:
        return absent_class(path)
    base = entry[len(name) + 1 : -1]
    return absent_class(path, _named(base)) if base else absent_function(path)


def _module(path: str):
    from importlib import import_module

    return import_module(f"taeda.{path}")


def _named(path: str):
    module, _, name = path.rpartition(".")
    if module == "builtins":
        import builtins

        return getattr(builtins, name)
    return getattr(_module(module), name)


class _Loader:
    """Makes a module that holds placeholders alone."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module) -> None:
        from taeda._lazy import attributes

        module.__doc__ = "Names of what is not there yet; each refuses when it is used."
        module.__all__ = list(entries(module.__name__))
        module.__getattr__ = attributes(module.__name__)


def _in_native(name: str):
    native = _module("_C")
    native._functorch  # noqa: B018  binds what most programs never touch
    return vars(native).get(name)


class _NativeLoader:
    """Hands out a module that `taeda._C` holds."""

    @staticmethod
    def create_module(spec):
        return _in_native(spec.name.rpartition(".")[2])

    @staticmethod
    def exec_module(module) -> None:
        pass


def find_spec(name: str):
    """The import system's answer for a module without a file; None if there is none.

    Those are the modules inside of `taeda._C`, and those that only the table has.
    """
    import types
    from importlib.machinery import ModuleSpec

    from .table import DEVICES, TABLE

    path = name.removeprefix("taeda.")
    inner = path.removeprefix("_C.")
    if inner != path and isinstance(_in_native(inner), types.ModuleType):
        return ModuleSpec(name, _NativeLoader)
    if path in DEVICES:
        from importlib.util import spec_from_file_location

        # A package, as `taeda.mps.profiler` is a module of its own.
        return spec_from_file_location(
            name, f"{__path__[0]}/device.py", submodule_search_locations=[]
        )
    inner = f"{path}."
    if path not in TABLE and not any(key.startswith(inner) for key in TABLE):
        return None
    return ModuleSpec(name, _Loader, is_package=True)


def listing() -> str:
    """The table as a page of the documentation."""
    from .table import TABLE

    lines = [
        "# Placeholders",
        "",
        "Names of PyTorch's that packages import and that taeda does not have yet:",
        "classes of which no instance can be made, and functions, all of which raise",
        "NotImplementedError with their name. `hasattr` says False for all others that",
        "are not there. Printed by `python -m taeda._compat`.",
        "",
        "| module | names |",
        "|---|---|",
    ]
    for module in sorted(TABLE):
        names = ", ".join(f"`{n}`" for n in sorted(entries(f"taeda.{module}")))
        shown = f"taeda.{module}".rstrip(".").replace(":", ".")
        lines.append(f"| `{shown}` | {names} |")
    return "\n".join(lines) + "\n"
