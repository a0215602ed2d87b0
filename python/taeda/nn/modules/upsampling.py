"""Resizing layers."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .._types import Flag
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes the last one, two or three dimensions.

    Args:
        size: wanted sizes, or
        scale_factor: their ratio to the present ones.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: whether corner pixels map to each other by their centres.
        recompute_scale_factor: see `nn.functional.interpolate`.

    Example:
        >>> taeda.nn.Upsample(scale_factor=2)(taeda.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name"]

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode: str = "nearest",
        align_corners: Flag = None,
        recompute_scale_factor: Flag = None,
    ) -> None:
        super().__init__()
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        elif scale_factor:
            scale_factor = float(scale_factor)
        self.__dict__.update(
            name=type(self).__name__,
            size=size,
            scale_factor=scale_factor or None,
            mode=mode,
            align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )

    def forward(self, input: Tensor) -> Tensor:
        size = (self.size, self.scale_factor)
        how = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(input, *size, *how)

    def __setstate__(self, state) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode "nearest".

    Args:
        size, scale_factor: as for `Upsample`.

    Example:
        >>> layer = taeda.nn.UpsamplingNearest2d(scale_factor=2)
        >>> tuple(layer(taeda.ones(1, 1, 2, 3)).shape)
        (1, 1, 4, 6)
    """

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode "bilinear" and aligned corners.

    Args:
        size, scale_factor: as for `Upsample`.

    Example:
        >>> layer = taeda.nn.UpsamplingBilinear2d(scale_factor=2)
        >>> tuple(layer(taeda.ones(1, 1, 2, 3)).shape)
        (1, 1, 4, 6)
    """

    def __init__(self, size=None, scale_factor=None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
