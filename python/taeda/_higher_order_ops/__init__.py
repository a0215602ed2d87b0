"""Operators that take functions.

Each name is a submodule's and, here, that submodule's function.
"""

from taeda._higher_order_ops.associative_scan import associative_scan
from taeda._higher_order_ops.cond import cond
from taeda._higher_order_ops.map import map
from taeda._higher_order_ops.scan import scan
from taeda._higher_order_ops.while_loop import while_loop
from taeda._higher_order_ops.wrap import wrap

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop", "wrap"]
