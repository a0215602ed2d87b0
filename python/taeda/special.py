"""Special functions: natives under their short names."""

from __future__ import annotations

from taeda import _C
from taeda._lazy import attributes

_natives = {
    name.removeprefix("special_"): function
    for name, function in vars(_C._special).items()
    if not name.startswith("_")
}
globals().update(_natives)
__all__ = list(_natives)
__getattr__ = attributes(__name__)
