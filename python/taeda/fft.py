"""Fourier transforms: natives under their short names."""

from __future__ import annotations

from taeda import _C

_natives = {
    name.removeprefix("fft_"): function
    for name, function in vars(_C._fft).items()
    if not name.startswith("_")
}
globals().update(_natives)
__all__ = list(_natives)
