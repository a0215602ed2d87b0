"""Which modules are this library's."""

from __future__ import annotations

import taeda

__all__ = ["is_own_module", "without_library"]


def is_own_module(path) -> bool:
    """Whether a `__module__` is this package's, under its name or under `as_torch`'s.

    Args:
        path: "taeda.nn.modules.linear", or None.
    """
    root = path.partition(".")[0] if isinstance(path, str) else ""
    return root == "taeda" or (root != "" and root == taeda.__name__)


def without_library(path: str) -> str:
    """ "cuda.amp" of the module "taeda.cuda.amp"; "" for one that is another's."""
    return path.partition(".")[2] if is_own_module(path) else ""
