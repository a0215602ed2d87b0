"""Where an object comes from."""

from __future__ import annotations

from types import ModuleType

from taeda.package._mangling import is_mangled


def is_from_package(obj) -> bool:
    """Is it a module of a package, or defined in one (or its class)?

    Example:
        >>> taeda.package.is_from_package(taeda.nn.Linear(1, 1))
        False
    """
    if isinstance(obj, ModuleType):
        return is_mangled(obj.__name__)
    module = getattr(obj, "__module__", None) or type(obj).__module__
    return is_mangled(module)
