"""Memory that is nearer to some processors than to others."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["binding"]
__getattr__ = attributes(__name__, None, ("binding",))
