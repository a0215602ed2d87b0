"""Tracing of tensors: none is under way."""

from __future__ import annotations

from taeda._absent import absent_function

__all__ = ["get_proxy_mode", "make_fx"]
make_fx = absent_function("fx.experimental.proxy_tensor.make_fx")


def get_proxy_mode() -> None:
    """The mode that traces: none."""
