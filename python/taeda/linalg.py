"""Linear algebra: natives under their short names."""

from __future__ import annotations

from taeda import _C
from taeda._C import _LinAlgError as LinAlgError
from taeda._lazy import attributes

_natives = {
    name.removeprefix("linalg_"): function
    for name, function in vars(_C._linalg).items()
    if not name.startswith("_")
}
globals().update(_natives)
__all__ = [*_natives, "LinAlgError"]
LinAlgError.__module__ = "taeda.linalg"
LinAlgError.__qualname__ = LinAlgError.__name__ = "LinAlgError"
__getattr__ = attributes(__name__)
