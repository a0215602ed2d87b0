"""Every public name of the package, and the page on which it stands.

Public is what a module without an underscore in its path lists in `__all__`, or, where
it has none, every name of its own without an underscore; of classes, what they define
themselves. An object with several names stands under the shortest one.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
import warnings
from dataclasses import dataclass, field

import taeda

# A module with more names than this has a page for each first letter.
LONGEST_PAGE = 90


@dataclass
class Entry:
    """One object under its shortest public name.

    Attributes:
        owner: the class whose member it is, or None.
    """

    path: str
    value: object
    owner: type | None = None
    others: list[str] = field(default_factory=list)
    members: list[Entry] = field(default_factory=list)

    @property
    def module(self) -> str:
        """The module whose page it is on."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    @property
    def paths(self) -> list[str]:
        """All its names, those of its members not included."""
        return [self.path, *self.others]


def modules() -> dict[str, types.ModuleType]:
    """The public modules by name."""
    found = {"taeda": taeda}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in pkgutil.walk_packages(taeda.__path__, "taeda."):
            if not any(part.startswith("_") for part in info.name.split(".")):
                found[info.name] = importlib.import_module(info.name)
    return found


def public_names(module: types.ModuleType) -> dict[str, object]:
    """Name to object of what a module gives its users."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else dir(module)
    found = {}
    for name in sorted({*names} | ({*dir(module)} if module is taeda else set())):
        if name.startswith("_"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(module, name, None)
        if isinstance(value, types.ModuleType) or value is None:
            continue
        if listed is not None and module is not taeda or is_own(value, module):
            found[name] = value
    return found


def is_own(value: object, module: types.ModuleType | None = None) -> bool:
    """Whether a value is this library's, or a constant of the module."""
    if callable(value):
        owner = getattr(value, "__module__", None) or ""
        return isinstance(owner, str) and (owner + ".").startswith("taeda.")
    return module is taeda or type(value).__module__.startswith("taeda")


def members(cls: type) -> dict[str, object]:
    """The public functions and properties that a class defines itself."""
    spaces = [vars(cls)]
    if cls is taeda.Tensor:
        spaces = [vars(base) for base in reversed(cls.__mro__[:-1])]
    found: dict[str, object] = {}
    for space in spaces:
        for name, value in space.items():
            inner = getattr(value, "__func__", value)
            shown = callable(inner) or hasattr(inner, "__get__")
            if not name.startswith("_") and shown and not isinstance(inner, type):
                found[name] = inner
    return found


def collect() -> list[Entry]:
    """All entries, by module and name."""
    by_object: dict[int | str, Entry] = {}
    pairs = [
        (f"{space}.{name}", value)
        for space, module in modules().items()
        for name, value in public_names(module).items()
    ]
    pairs.sort(key=lambda pair: (pair[0].count("."), len(pair[0]), pair[0]))
    for path, value in pairs:
        # Numbers and strings of equal value are different names.
        alike = callable(value) or isinstance(value, taeda.dtype)
        entry = by_object.get(id(value)) if alike else None
        if entry is not None:
            entry.others.append(path)
            continue
        by_object[id(value) if alike else path] = entry = Entry(path, value)
        if isinstance(value, type) and is_own(value):
            entry.members = [
                Entry(f"{path}.{name}", member, value)
                for name, member in sorted(members(value).items())
            ]
    return sorted(by_object.values(), key=lambda e: (e.module, e.name.lower(), e.name))


def pages(entries: list[Entry]) -> dict[str, list[Entry]]:
    """Page (a path without suffix) to its entries.

    A class with more members than fit one page has pages of its own for them.
    """
    by_module: dict[str, list[Entry]] = {}
    for entry in entries:
        by_module.setdefault(entry.module, []).append(entry)
        if len(entry.members) > LONGEST_PAGE:
            by_module[entry.path], entry.members = entry.members, []
    found = {}
    for module, listed in by_module.items():
        if len(listed) <= LONGEST_PAGE:
            found[module] = listed
            continue
        for entry in listed:
            letter = entry.name[0].lower()
            found.setdefault(f"{module}/{letter}", []).append(entry)
    return found


def targets(paged: dict[str, list[Entry]]) -> dict[str, str]:
    """Public name to the page that has it; the anchor is the name itself."""
    found = {}
    for page, entries in paged.items():
        for entry in entries:
            for path in entry.paths:
                found[path] = page
                for member in entry.members:
                    found[f"{path}.{member.name}"] = page
    return found
