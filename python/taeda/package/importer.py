"""Who finds modules, and under which name an object can be found again."""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod

from ._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = [
    "Importer",
    "ObjMismatchError",
    "ObjNotFoundError",
    "OrderedImporter",
    "sys_importer",
]


class ObjNotFoundError(Exception):
    """An importer has no object under the name that an object goes by."""


class ObjMismatchError(Exception):
    """An importer has another object under the name that an object goes by."""


class Importer(ABC):
    """An environment of modules, to import from and to name objects in.

    A subclass defines `import_module`; `modules` is what `whichmodule` searches.

    Example:
        >>> sys_importer.get_name(GlobGroup)
        ('taeda.package.glob_group', 'GlobGroup')
    """

    modules: dict

    @abstractmethod
    def import_module(self, module_name: str):
        """The module of a name; ModuleNotFoundError where there is none."""

    def get_name(self, obj, name: str | None = None) -> tuple[str, str]:
        """(module, name within it) under which an object is found here.

        Raises:
            ObjNotFoundError, ObjMismatchError: the importer has none or another there.
        """
        if name is None:
            name = _own_name(obj)
        module_name = self.whichmodule(obj, name)
        inside = demangle(module_name)
        try:
            found = self.import_module(inside)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, KeyError, AttributeError) as error:
            raise ObjNotFoundError(
                f"{obj!r} is not found as {inside}.{name}"
            ) from error
        if found is not obj:
            raise ObjMismatchError(
                f"{obj!r} of {_place(module_name)} is not what this importer has as "
                f"{inside}.{name}, of {_place(getattr(found, '__module__', ''))}; "
                "give the exporter an importer that knows the object's package"
            )
        return module_name, name

    def whichmodule(self, obj, name: str) -> str:
        """The name of the module in which an object is found under a name."""
        module = getattr(obj, "__module__", None)
        if module is not None:
            return module
        for module_name, module in list(self.modules.items()):
            if module_name not in ("__main__", "__mp_main__") and module is not None:
                found = module
                for part in name.split("."):
                    found = getattr(found, part, None)
                if found is obj:
                    return module_name
        return "__main__"


def _own_name(obj) -> str:
    reduce = getattr(obj, "__reduce__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if name is None and reduce is not None:
        reduced = reduce()
        name = reduced if isinstance(reduced, str) else None
    return name or type(obj).__name__


def _place(module_name: str) -> str:
    if not is_mangled(module_name):
        return f"the process's module {module_name!r}"
    package = get_mangle_prefix(module_name)
    return f"the module {demangle(module_name)!r} of package {package}"


class _SysImporter(Importer):
    """The modules of this process."""

    def import_module(self, module_name: str):
        return importlib.import_module(module_name)

    def whichmodule(self, obj, name: str) -> str:
        return pickle.whichmodule(obj, name)


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers, the first of which that has a module gives it.

    Args:
        *args: the importers.

    Example:
        >>> both = taeda.package.OrderedImporter(taeda.package.sys_importer)
        >>> both.import_module("math").floor(2.5)
        2
    """

    def __init__(self, *args) -> None:
        self._importers = list(args)

    def import_module(self, module_name: str):
        last = None
        for importer in self._importers:
            if not hasattr(importer, "import_module"):
                raise TypeError(
                    f"OrderedImporter: expected importers, got {type(importer)}"
                )
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
        raise last or ModuleNotFoundError(module_name)

    def whichmodule(self, obj, name: str) -> str:
        found = (each.whichmodule(obj, name) for each in self._importers)
        return next((place for place in found if place != "__main__"), "__main__")
