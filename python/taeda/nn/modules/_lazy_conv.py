"""Convolutions that take their input channels from the first input."""

from __future__ import annotations

from .._types import MaybeDevice, MaybeDtype
from ..parameter import UninitializedParameter
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .lazy import LazyModuleMixin

# These classes show themselves as part of conv.py.
__name__ = f"{__package__}.conv"


class _LazyConvXdMixin(LazyModuleMixin):
    def _delay(self, out_channels, bias, device, dtype) -> None:
        """Put off the parameters until the input is known."""
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs) -> None:
        """Take the input channels from `input`.

        Raises:
            RuntimeError: input of a wrong rank.
            ValueError: groups that do not divide the channels.
        """
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        self.weight.materialize(shape)
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_num_spatial_dims(self) -> int:
        return len(self.kernel_size)

    def _get_in_channels(self, input) -> int:
        plain = self._get_num_spatial_dims() + 1
        if input.dim() not in (plain, plain + 1):
            raise RuntimeError(
                f"Expected {plain}D (unbatched) or {plain + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[input.dim() - plain]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        sizes = (kernel_size, stride, padding, dilation, groups)
        super().__init__(0, 0, *sizes, False, padding_mode, device, dtype)
        self._delay(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        sizes = (kernel_size, stride, padding, output_padding, groups)
        rest = (dilation, padding_mode, device, dtype)
        super().__init__(0, 0, *sizes, False, *rest)
        self._delay(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyConv1d(2, 1)(taeda.ones(3, 4)).shape)
        (2, 4)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyConv2d(2, 1)(taeda.ones(3, 4, 4)).shape)
        (2, 4, 4)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input.

    Example:
        >>> tuple(taeda.nn.LazyConv3d(2, 1)(taeda.ones(3, 4, 4, 4)).shape)
        (2, 4, 4, 4)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input.

    Example:
        >>> layer = taeda.nn.LazyConvTranspose1d(2, 1)
        >>> tuple(layer(taeda.ones(3, 4)).shape)
        (2, 4)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input.

    Example:
        >>> layer = taeda.nn.LazyConvTranspose2d(2, 1)
        >>> tuple(layer(taeda.ones(3, 4, 4)).shape)
        (2, 4, 4)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input.

    Example:
        >>> layer = taeda.nn.LazyConvTranspose3d(2, 1)
        >>> tuple(layer(taeda.ones(3, 4, 4, 4)).shape)
        (2, 4, 4, 4)
    """

    cls_to_become = ConvTranspose3d
