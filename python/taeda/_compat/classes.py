"""`taeda.classes`: the classes of compiled extensions."""

from __future__ import annotations

__all__ = ["classes"]


class _Classes:
    """The registry of such classes, which is empty: none can be loaded."""

    loaded_libraries: frozenset = frozenset()

    def __getattr__(self, name: str):
        raise AttributeError(f"classes: no namespace {name!r} is registered")


classes = _Classes()
