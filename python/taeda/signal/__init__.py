"""Signals: windows."""

from taeda.signal import windows

__all__ = ["windows"]
