"""Images as columns of windows, and back."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .module import Module
from .utils import described

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Sums columns of windows into an image; the transpose of `Unfold`.

    Args:
        output_size: (H, W) of the image.
        kernel_size, dilation, padding, stride: those of the `Unfold`.

    Example:
        >>> tuple(taeda.nn.Fold(2, 2)(taeda.ones(1, 4, 1)).shape)
        (1, 1, 2, 2)
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size, kernel_size, dilation=1, padding=0, stride=1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        window = (self.kernel_size, self.dilation, self.padding, self.stride)
        return F.fold(input, self.output_size, *window)

    def extra_repr(self) -> str:
        return described(self, "output_size kernel_size dilation padding stride")


class Unfold(Module):
    """All windows of (N, C, H, W) as columns: (N, C * window, windows).

    Args:
        kernel_size, dilation, padding, stride: one number or two, as in pooling.

    Example:
        >>> tuple(taeda.nn.Unfold(2)(taeda.ones(1, 1, 3, 3)).shape)
        (1, 4, 4)
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        window = (self.kernel_size, self.dilation, self.padding, self.stride)
        return F.unfold(input, *window)

    def extra_repr(self) -> str:
        return described(self, "kernel_size dilation padding stride")
