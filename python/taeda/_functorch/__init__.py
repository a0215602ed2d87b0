"""Function transforms; `taeda.func` is their public place."""

from taeda._lazy import attributes

__getattr__ = attributes(__name__, None, frozenset({"config"}))
