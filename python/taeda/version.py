"""The version of the package and of the interface it follows."""

from __future__ import annotations

from taeda._C import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
# This build has no accelerator.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "unknown"
