"""Convolutions and their transposes in one, two and three dimensions."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .._types import MaybeDevice, MaybeDtype
from ..parameter import Parameter
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple, _single

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PADDINGS = ("same", "valid")
_MODES = ("zeros", "reflect", "replicate", "circular")


def _check(channels, groups, stride, padding, padding_mode) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name, count in zip(("in_channels", "out_channels"), channels, strict=False):
        if count % groups != 0:
            raise ValueError(f"{name} must be divisible by groups")
    if isinstance(padding, str):
        if padding not in _PADDINGS:
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {_PADDINGS}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(
            f"padding_mode must be one of {_MODES}, but got "
            f"padding_mode='{padding_mode}'"
        )


def _around(padding, dilation, kernel_size):
    """Padding as `pad` takes it: last dimension first, begin and end."""
    if padding == "valid":
        return [0, 0] * len(kernel_size)
    if padding != "same":
        return _reverse_repeat_tuple(padding, 2)
    result = []
    for step, size in zip(reversed(dilation), reversed(kernel_size), strict=False):
        total = step * (size - 1)
        result += [total // 2, total - total // 2]
    return result


class _ConvNd(Module):
    """What all convolutions share: parameters, their first values, the repr."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    # fmt: off
    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation,
        transposed, output_padding, groups, bias, padding_mode,
        device: MaybeDevice = None, dtype: MaybeDtype = None,
    ) -> None:
        # fmt: on
        super().__init__()
        channels = (in_channels, out_channels)
        _check(channels, groups, stride, padding, padding_mode)
        given = locals()
        self.__dict__.update({name: given[name] for name in _ConvNd.__constants__})
        self.transposed = transposed
        around = _around(padding, dilation, kernel_size)
        self._reversed_padding_repeated_twice = around
        kind = {"device": device, "dtype": dtype}
        first, second = channels if transposed else (out_channels, in_channels)
        shape = (first, second // groups, *kernel_size)
        self.weight = Parameter(taeda.empty(shape, **kind))
        own_bias = Parameter(taeda.empty(out_channels, **kind)) if bias else None
        self.register_parameter("bias", own_bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform in +-1/sqrt(fan_in)."""
        weight = self.weight
        if weight.is_contiguous():
            init._layer_(weight, self.bias)
        else:  # values go to places of the logical order, whatever the layout
            with taeda.no_grad():
                drawn = taeda.empty_like(weight, memory_format=taeda.contiguous_format)
                init._layer_(drawn, self.bias)
                weight.copy_(drawn)

    def _conv(self, convolve, zero, input, weight, bias):
        """Convolve, padding by a mode of its own first where there is one."""
        padding = self.padding
        if self.padding_mode != "zeros":
            around = self._reversed_padding_repeated_twice
            input, padding = F.pad(input, around, mode=self.padding_mode), zero
        places = (self.stride, padding, self.dilation, self.groups)
        return convolve(input, weight, bias, *places)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # replaced, by a parametrization or by a plain tensor
            weight, bias = self.weight, self.bias
        return self._conv_forward(input, weight, bias)

    def extra_repr(self) -> str:
        shown = f"{self.in_channels}, {self.out_channels}"
        shown += f", kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        usual = {"padding": zeros, "dilation": ones, "output_padding": zeros}
        usual.update(groups=1, bias=True, padding_mode="zeros")
        given = {**self.__dict__, "bias": self.bias is not None}
        for name, value in usual.items():
            if given[name] != value:
                shown += f", {name}={given[name]}"
        return shown

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _sizes(d, *values):
    """Each value for `d` dimensions; a name of a padding as it is."""
    spread = _ntuple(d)
    return (v if isinstance(v, str) else spread(v) for v in values)


class _ConvForwardNd(_ConvNd):
    """The constructor of the convolutions over `_d` dimensions."""

    _d: int

    def __init__(
        self,
        in_channels: int,
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
        sizes = _sizes(self._d, kernel_size, stride, padding, dilation)
        rest = (False, (0,) * self._d, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *sizes, *rest)


class Conv1d(_ConvForwardNd):
    """Cross-correlation of (N, C_in, L) with a kernel for every channel pair.

    out_j = b_j + sum over i of W_ji * x_i, of length
    floor((L + 2 padding - dilation (kernel - 1) - 1) / stride + 1).

    Args:
        in_channels, out_channels: C_in and C_out.
        kernel_size, stride, dilation: one number for each dimension, or one for all.
        padding: the same, or "valid" (none), or "same" (output as long as input).
        groups: channels are cut into that many groups, each convolved by itself.
        bias: whether there is a b.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Attributes:
        weight (Tensor): (C_out, C_in / groups, kernel).
        bias (Tensor): (C_out,).

    Raises:
        ValueError: groups that do not divide the channels, an unknown padding, or
            "same" with a stride.

    Example:
        >>> tuple(taeda.nn.Conv1d(2, 4, 3)(taeda.ones(1, 2, 8)).shape)
        (1, 4, 6)
    """

    _d = 1

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv1d, (0,), input, weight, bias)


class Conv2d(_ConvForwardNd):
    """Cross-correlation of (N, C_in, H, W); see `Conv1d`.

    LeCun et al., "Gradient-based learning applied to document recognition", 1998.

    Example:
        >>> tuple(taeda.nn.Conv2d(2, 4, 3, padding="same")(taeda.ones(2, 5, 6)).shape)
        (4, 5, 6)
    """

    _d = 2

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv2d, (0, 0), input, weight, bias)


class Conv3d(_ConvForwardNd):
    """Cross-correlation of (N, C_in, D, H, W); see `Conv1d`.

    Example:
        >>> tuple(taeda.nn.Conv3d(1, 2, 2)(taeda.ones(1, 3, 3, 3)).shape)
        (2, 2, 2, 2)
    """

    _d = 3

    def _conv_forward(self, input, weight, bias):
        return self._conv(F.conv3d, (0, 0, 0), input, weight, bias)


class _ConvTransposeNd(_ConvNd):
    """What the transposed convolutions share."""

    _d: int

    def __init__(
        self,
        in_channels: int,
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
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        sizes = (kernel_size, stride, padding, dilation, output_padding)
        *sizes, extra = _sizes(self._d, *sizes)
        rest = (extra, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, *sizes, True, *rest)

    def _output_padding(
        self,
        input,
        output_size,
        stride,
        padding,
        kernel_size,
        num_spatial_dims: int,
        dilation=None,
    ):
        """What has to be added at the end for the wanted output size."""
        if output_size is None:
            return _single(self.output_padding)
        d = num_spatial_dims
        outer = 2 if input.dim() == d + 2 else 1
        if len(output_size) == outer + d:
            output_size = output_size[outer:]
        if len(output_size) != d:
            raise ValueError(
                f"ConvTranspose{d}D: for {input.dim()}D input, output_size must have "
                f"{d} or {outer + d} elements (got {len(output_size)})"
            )
        least = [
            (n - 1) * s - 2 * p + step * (k - 1) + 1
            for n, s, p, step, k in zip(
                input.shape[outer:],
                stride,
                padding,
                dilation or (1,) * d,
                kernel_size,
                strict=False,
            )
        ]
        most = [n + s - 1 for n, s in zip(least, stride, strict=False)]
        if any(
            not a <= n <= b for a, n, b in zip(least, output_size, most, strict=False)
        ):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range "
                f"from {least} to {most} (for an input of {input.size()[2:]})"
            )
        return [n - a for n, a in zip(output_size, least, strict=False)]

    def _transpose(self, convolve, d, input, output_size):
        if self.padding_mode != "zeros":
            raise ValueError(
                f"Only `zeros` padding mode is supported for {type(self).__name__}"
            )
        places = (self.stride, self.padding, self.kernel_size)
        extra = self._output_padding(input, output_size, *places, d, self.dilation)
        places = (self.stride, self.padding, extra, self.groups, self.dilation)
        return convolve(input, self.weight, self.bias, *places)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose (gradient) of `Conv1d`, which enlarges by its stride.

    Output length: (L - 1) stride - 2 padding + dilation (kernel - 1) +
    output_padding + 1. Zeiler et al., "Deconvolutional Networks", 2010.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            device, dtype: those of the convolution that is transposed.
        output_padding: added to the output's length at one end, below the stride.
        padding_mode: "zeros" only.

    Attributes:
        weight (Tensor): (C_in, C_out / groups, kernel).
        bias (Tensor): (C_out,).

    Raises:
        ValueError: as `Conv1d`; another padding mode; in forward, an `output_size`
            that the sizes do not allow.

    Example:
        >>> layer = taeda.nn.ConvTranspose1d(2, 4, 3, stride=2)
        >>> tuple(layer(taeda.ones(1, 2, 8)).shape)
        (1, 4, 17)
    """

    _d = 1

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose1d, 1, input, output_size)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of `Conv2d`; see `ConvTranspose1d`.

    Example:
        >>> tuple(taeda.nn.ConvTranspose2d(2, 4, 3)(taeda.ones(2, 5, 6)).shape)
        (4, 7, 8)
    """

    _d = 2

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose2d, 2, input, output_size)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of `Conv3d`; see `ConvTranspose1d`.

    Example:
        >>> tuple(taeda.nn.ConvTranspose3d(1, 2, 2)(taeda.ones(1, 3, 3, 3)).shape)
        (2, 4, 4, 4)
    """

    _d = 3

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose3d, 3, input, output_size)


def __getattr__(name: str):
    """The lazy forms live in a file of their own, read when first used."""
    if name.startswith(("Lazy", "_Lazy")):
        from . import _lazy_conv

        if hasattr(_lazy_conv, name):
            return getattr(_lazy_conv, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
