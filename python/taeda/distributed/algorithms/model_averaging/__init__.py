"""Averages of models over ranks."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["averagers", "utils"]
__getattr__ = attributes(__name__, {}, ("averagers", "utils"))
