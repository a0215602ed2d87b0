"""Names of modules that come from packages: `<torch_package_3>.model.layers`.

Two packages may hold modules of one name, which is also a module of the process.
"""

from __future__ import annotations

import itertools
import re

__all__ = ["PackageMangler", "demangle", "get_mangle_prefix", "is_mangled"]

_numbers = itertools.count()  # of packages that were opened; `next` is one step
_PREFIX = re.compile(r"<torch_package_\d+>")


class PackageMangler:
    """The names of one package's modules."""

    def __init__(self) -> None:
        self._parent = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """The name of the package's module outside of it."""
        assert name, "a module of a package has a name"
        return f"{self._parent}.{name}"

    def demangle(self, mangled: str) -> str:
        """The way back; names of others stay as they are."""
        return mangled.removeprefix(self._parent + ".")

    def parent_name(self) -> str:
        """What the names begin with."""
        return self._parent


def is_mangled(name: str) -> bool:
    """Is it the name of a package's module?"""
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """The name within whatever package it comes from."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """Which package it comes from; the name itself if from none."""
    return name.partition(".")[0] if is_mangled(name) else name
