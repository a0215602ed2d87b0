"""Channels to pixels and back."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .module import Module
from .utils import described

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """(*, C r^2, H, W) -> (*, C, H r, W r).

    Shi et al., "Real-Time Single Image and Video Super-Resolution ...", 2016.

    Args:
        upscale_factor: r.

    Example:
        >>> tuple(taeda.nn.PixelShuffle(2)(taeda.ones(8, 3, 3)).shape)
        (2, 6, 6)
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return described(self, "upscale_factor")


class PixelUnshuffle(Module):
    """(*, C, H r, W r) -> (*, C r^2, H, W); undoes `PixelShuffle`.

    Args:
        downscale_factor: r.

    Example:
        >>> tuple(taeda.nn.PixelUnshuffle(2)(taeda.ones(2, 6, 6)).shape)
        (8, 3, 3)
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return described(self, "downscale_factor")
