"""Dropout layers: active while training only."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    """Holds p and inplace; subclasses name the function."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p, scales the rest by 1 / (1 - p).

    Hinton et al., "Improving neural networks by preventing co-adaptation of feature
    detectors", 2012.

    Args:
        p: probability of zero.
        inplace: write into the input.

    Raises:
        ValueError: p outside [0, 1].

    Example:
        >>> taeda.nn.Dropout(0.2).eval()(taeda.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L); arguments as `Dropout`.

    Tompson et al., "Efficient Object Localization Using Convolutional Networks", 2015.

    Example:
        >>> taeda.nn.Dropout1d(0.0)(taeda.ones(1, 2))
        tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W); see `Dropout1d`.

    Example:
        >>> taeda.nn.Dropout2d(0.0)(taeda.ones(1, 1, 1, 1))
        tensor([[[[1.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W); see `Dropout1d`.

    Example:
        >>> taeda.nn.Dropout3d(0.0)(taeda.ones(1, 1, 1, 1))
        tensor([[[[1.]]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of what `SELU` gives.

    Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Example:
        >>> taeda.nn.AlphaDropout(0.2).eval()(taeda.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels.

    Example:
        >>> taeda.nn.FeatureAlphaDropout(0.2).eval()(taeda.ones(1, 2))
        tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
