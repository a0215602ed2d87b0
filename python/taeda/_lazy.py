"""Module attributes that are imported when they are first used."""

from __future__ import annotations

import sys

__all__ = ["Late", "attributes", "missing"]


def attributes(package: str, where: dict | None = None, submodules=()):
    """The `__getattr__` of a module.

    Args:
        package: the module's full name.
        where: name -> the submodule that has it; one that begins with a dot lies beside
            the package.
        submodules: names of submodules.

    Returns:
        A function of a name. For one that is in neither, nor among the placeholders of
        `taeda._compat`, it raises AttributeError: `hasattr` is False for what is not
        there, and `from package import name` an ImportError.
    """

    def find(name: str):
        from importlib import import_module

        module = where.get(name) if where else None
        if module is not None:
            found = getattr(import_module(f".{module}", package), name)
        elif name in submodules:
            return import_module(f"{package}.{name}")
        else:
            found = _placeholder(package, name)
        vars(sys.modules[package])[name] = found
        return found

    return find


def _placeholder(package: str, name: str):
    if not name.startswith("__"):
        from taeda._compat import placeholder

        found = placeholder(package, name)
        if found is not None:
            return found
    raise missing(package, name)


def missing(package: str, name: str) -> AttributeError:
    """The error of a name that a module does not have."""
    module = sys.modules.get(package)
    shown = getattr(module, "__name__", package)  # as_torch changes it
    return AttributeError(
        f"module {shown!r} has no attribute {name!r}: taeda has no such thing yet",
        name=name,
        obj=module,
    )


class Late:
    """A member of a native class that `taeda._native_members` has when it is asked for.

    Args:
        owner: the class.
        name: of the member.
    """

    __slots__ = ("name", "owner")

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance, kind):
        from taeda._native_members import MEMBERS

        found = MEMBERS[self.owner][self.name]
        setattr(self.owner, self.name, found)
        return found.__get__(instance, kind)
