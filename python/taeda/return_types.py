"""Named tuples that operators with several results return."""

from __future__ import annotations

from taeda import _C

__all__ = _C._return_type_names()


def __getattr__(name: str):
    try:
        found = _C._return_type(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})
