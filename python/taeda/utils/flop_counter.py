"""Counting of operations: not in this build, and it says so."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function

__all__ = ["FlopCounterMode", "register_flop_formula"]
FlopCounterMode = absent_class("utils.flop_counter.FlopCounterMode")
register_flop_formula = absent_function("utils.flop_counter.register_flop_formula")
