"""Engines of quantized operators, which do not exist yet."""

from __future__ import annotations

engine = "none"
supported_engines = ["none"]
