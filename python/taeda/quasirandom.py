"""Sequences that fill space evenly: not there yet, and they say so."""

from __future__ import annotations

from taeda._absent import absent_class

__all__ = ["SobolEngine"]
SobolEngine = absent_class("quasirandom.SobolEngine")
SobolEngine.MAXDIM = 21201
