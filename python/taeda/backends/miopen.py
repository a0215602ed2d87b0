"""AMD's library of neural networks, which this build does not use.

`immediate` is kept for a build with it: whether it looks for the quickest kernel.
"""

from __future__ import annotations

from ._switches import Kept, flag_functions, properties

__all__ = ["flags", "set_flags"]

_immediate = Kept("immediate", False)
set_flags, flags = flag_functions({"immediate": _immediate}, {"immediate": False})
properties(__name__, immediate=_immediate)
