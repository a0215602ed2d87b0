"""Public names without a docstring, by module.

    python -m docsite.undocumented

A name is documented where `help` shows a text of its own or of the class that declares
it; an attribute also where the text of its class names it. Entries of a named tuple are
in its signature.
"""

from __future__ import annotations

import json
import re
import types

from . import inventory
from .inventory import Entry, is_own


def _class_text(cls: type) -> str:
    return "\n".join(vars(base).get("__doc__") or "" for base in cls.__mro__[:-1])


def has_text(entry: Entry, owner: type | None) -> bool:
    """Whether anything is said of a name.

    Args:
        entry: the name and its object.
        owner: the class whose member it is, or None.
    """
    value = entry.value
    named = owner and re.search(rf"\b{entry.name}\b", _class_text(owner))
    if named and not callable(value):
        return True
    if type(value).__name__ == "_tuplegetter":
        return bool(owner and vars(owner).get("__doc__"))
    if isinstance(value, types.MemberDescriptorType):
        return False
    if isinstance(value, type):
        return bool(vars(value).get("__doc__"))
    if owner is None:
        return bool(getattr(value, "__doc__", None))
    spaces = (vars(base) for base in owner.__mro__)
    return any(getattr(s.get(entry.name), "__doc__", None) for s in spaces)


def missing() -> dict[str, list[str]]:
    """Module to its names without any text."""
    found: dict[str, list[str]] = {}
    for entry in inventory.collect():
        value = entry.value
        if not callable(value) or not (is_own(value) or isinstance(value, type)):
            continue
        if isinstance(value, type) and not is_own(value):
            continue
        members = [(member, value) for member in entry.members]
        for one, owner in [(entry, None), *members]:
            if not has_text(one, owner):
                found.setdefault(entry.module, []).append(one.path)
    return found


if __name__ == "__main__":
    print(json.dumps(missing(), indent=1))
