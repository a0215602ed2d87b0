"""Pictures of what a summary is made of, by PyTorch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import figure_pixels
from ._arrays import grid as _grid

__all__ = ["figure_to_image", "make_grid"]


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """A matplotlib figure as bytes (3, H, W), or a list of them as (N, 3, H, W)."""
    return np.moveaxis(figure_pixels(figures, close), -1, -3)


def make_grid(pictures: np.ndarray, ncols: int = 8) -> np.ndarray:
    """Pictures (N, C, H, W) side by side in rows, as one (3, height, width).

    Raises:
        AssertionError: it is no array of pictures with one channel or three.
    """
    shape = getattr(pictures, "shape", ())
    if len(shape) != 4 or shape[1] not in (1, 3):
        raise AssertionError(f"make_grid: expected (N, 1 or 3, H, W), got {shape}")
    return _grid(pictures, ncols)
