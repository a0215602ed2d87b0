"""A function as a graph of its own."""

from __future__ import annotations

from taeda._higher_order_ops._operators import operator_of

__all__ = ["wrap"]

wrap = operator_of("wrap")
