"""Pooling layers; each calls its function of nn.functional."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .._types import MaybeInt
from .module import Module
from .utils import _ntuple, _single, described

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    __constants__ = [
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "return_indices",
        "ceil_mode",
    ]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.ceil_mode = dilation, ceil_mode
        self.return_indices = return_indices

    def _options(self):
        """Everything after the input, in the order of the functions."""
        window = (self.kernel_size, self.stride, self.padding, self.dilation)
        return *window, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return described(self, "kernel_size stride padding dilation ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """The largest value of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: size of the window, one number for each dimension or for all.
        stride: step from window to window; default the window's size.
        padding: -inf put at both ends, at most half the window.
        dilation: distance between the elements of a window.
        return_indices: also int64 places of the maxima, for `MaxUnpool1d`.
        ceil_mode: round the output size up instead of down.

    Example:
        >>> tuple(taeda.nn.MaxPool1d(2)(taeda.ones(1, 4)).shape)
        (1, 2)
    """

    def forward(self, input: Tensor):
        return F.max_pool1d(input, *self._options())


class MaxPool2d(_MaxPoolNd):
    """The largest value of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: size of the window, one number for each dimension or for all.
        stride: step from window to window; default the window's size.
        padding: -inf put at both ends, at most half the window.
        dilation: distance between the elements of a window.
        return_indices: also int64 places of the maxima, for `MaxUnpool2d`.
        ceil_mode: round the output size up instead of down.

    Example:
        >>> tuple(taeda.nn.MaxPool2d(2)(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    def forward(self, input: Tensor):
        return F.max_pool2d(input, *self._options())


class MaxPool3d(_MaxPoolNd):
    """The largest value of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size: size of the window, one number for each dimension or for all.
        stride: step from window to window; default the window's size.
        padding: -inf put at both ends, at most half the window.
        dilation: distance between the elements of a window.
        return_indices: also int64 places of the maxima, for `MaxUnpool3d`.
        ceil_mode: round the output size up instead of down.

    Example:
        >>> tuple(taeda.nn.MaxPool3d(2)(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    def forward(self, input: Tensor):
        return F.max_pool3d(input, *self._options())


class _MaxUnpoolNd(Module):
    _d: int

    def __init__(self, kernel_size, stride=None, padding=0) -> None:
        super().__init__()
        spread = _ntuple(self._d)
        self.kernel_size, self.padding = spread(kernel_size), spread(padding)
        self.stride = spread(kernel_size if stride is None else stride)

    def extra_repr(self) -> str:
        return described(self, "kernel_size stride padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts pooled maxima back to their places; zero elsewhere.

    Zeiler et al., "Adaptive deconvolutional networks", 2011.

    Args:
        kernel_size, stride, padding: those of the `MaxPool1d`.

    Raises:
        ValueError: in forward, an `output_size` that cannot have been pooled.

    Example:
        >>> y, where = taeda.nn.MaxPool1d(2, return_indices=True)(taeda.ones(1, 4))
        >>> taeda.nn.MaxUnpool1d(2)(y, where).sum()
        tensor(2.)
    """

    _d = 1

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding)
        return F.max_unpool1d(input, indices, *window, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts pooled maxima back to their places; zero elsewhere.

    Zeiler et al., "Adaptive deconvolutional networks", 2011.

    Args:
        kernel_size, stride, padding: those of the `MaxPool2d`.

    Raises:
        ValueError: in forward, an `output_size` that cannot have been pooled.

    Example:
        >>> y, where = taeda.nn.MaxPool2d(2, return_indices=True)(taeda.ones(1, 4, 4))
        >>> taeda.nn.MaxUnpool2d(2)(y, where).sum()
        tensor(4.)
    """

    _d = 2

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding)
        return F.max_unpool2d(input, indices, *window, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts pooled maxima back to their places; zero elsewhere.

    Zeiler et al., "Adaptive deconvolutional networks", 2011.

    Args:
        kernel_size, stride, padding: those of the `MaxPool3d`.

    Raises:
        ValueError: in forward, an `output_size` that cannot have been pooled.

    Example:
        >>> pool = taeda.nn.MaxPool3d(2, return_indices=True)
        >>> y, where = pool(taeda.ones(1, 4, 4, 4))
        >>> taeda.nn.MaxUnpool3d(2)(y, where).sum()
        tensor(8.)
    """

    _d = 3

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding)
        return F.max_unpool3d(input, indices, *window, output_size)


class _AvgPoolNd(Module):
    __constants__ = [
        "kernel_size",
        "stride",
        "padding",
        "ceil_mode",
        "count_include_pad",
    ]

    def extra_repr(self) -> str:
        return described(self, "kernel_size stride padding")


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size, stride, padding, ceil_mode: as for `MaxPool1d`; zeros are padded.
        count_include_pad: count padded zeros as elements.

    Example:
        >>> taeda.nn.AvgPool1d(2)(taeda.tensor([[1.0, 3.0]]))
        tensor([[2.]])
    """

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.stride = _single(kernel_size if stride is None else stride)
        self.kernel_size, self.padding = _single(kernel_size), _single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        return F.avg_pool1d(input, *window, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad: as for `AvgPool1d`.
        divisor_override: divide by this instead of the number of elements.

    Example:
        >>> tuple(taeda.nn.AvgPool2d(2)(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: MaybeInt = None,
    ) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        counting = (self.count_include_pad, self.divisor_override)
        return F.avg_pool2d(input, *window, *counting)


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad: as for `AvgPool1d`.
        divisor_override: divide by this instead of the number of elements.

    Example:
        >>> tuple(taeda.nn.AvgPool3d(2)(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: MaybeInt = None,
    ) -> None:
        super().__init__()
        stride = kernel_size if stride is None else stride
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        window = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        counting = (self.count_include_pad, self.divisor_override)
        return F.avg_pool3d(input, *window, *counting)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _d: int

    def __init__(
        self,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices: bool = False,
        _random_samples=None,
    ) -> None:
        super().__init__()
        spread, name = _ntuple(self._d), type(self).__name__
        self.kernel_size = spread(kernel_size)
        if any(k <= 0 for k in self.kernel_size):
            raise ValueError(
                f"kernel_size must be greater than 0, but got {kernel_size}"
            )
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling "
                "ratio; only one of output_size and output_ratio may be specified"
            )
        if output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(
                f"output_ratio must be between 0 and 1 (got {output_ratio})"
            )

    def _options(self):
        size = (self.output_size, self.output_ratio)
        return self.kernel_size, *size, self.return_indices, self._random_samples


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows whose steps are drawn at random.

    Graham, "Fractional Max-Pooling", 2014.

    Args:
        kernel_size: size of the window.
        output_size: wanted size, or
        output_ratio: its ratio to the input's, in (0, 1).
        return_indices: also the places of the maxima.

    Raises:
        ValueError: neither or both of size and ratio, a ratio outside (0, 1), a
            window without elements.

    Example:
        >>> layer = taeda.nn.FractionalMaxPool2d(2, output_ratio=0.5)
        >>> tuple(layer(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    _d = 2

    def forward(self, input: Tensor):
        return F.fractional_max_pool2d(input, *self._options())


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows whose steps are drawn at random.

    Graham, "Fractional Max-Pooling", 2014.

    Args:
        kernel_size: size of the window.
        output_size: wanted size, or
        output_ratio: its ratio to the input's, in (0, 1).
        return_indices: also the places of the maxima.

    Raises:
        ValueError: neither or both of size and ratio, a ratio outside (0, 1), a
            window without elements.

    Example:
        >>> layer = taeda.nn.FractionalMaxPool3d(2, output_ratio=0.5)
        >>> tuple(layer(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    _d = 3

    def forward(self, input: Tensor):
        return F.fractional_max_pool3d(input, *self._options())


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def _options(self):
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode

    def extra_repr(self) -> str:
        return described(self, "norm_type kernel_size stride ceil_mode")


class LPPool1d(_LPPoolNd):
    """(sum of x^p over each window)^(1/p) of (N, C, L) or (C, L).

    Args:
        norm_type: the exponent p; infinity takes the maximum.
        kernel_size, stride, ceil_mode: as for `MaxPool1d`.

    Example:
        >>> tuple(taeda.nn.LPPool1d(2, 2)(taeda.ones(1, 4)).shape)
        (1, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, *self._options())


class LPPool2d(_LPPoolNd):
    """(sum of x^p over each window)^(1/p) of (N, C, H, W) or (C, H, W).

    Args:
        norm_type: the exponent p; infinity takes the maximum.
        kernel_size, stride, ceil_mode: as for `MaxPool2d`.

    Example:
        >>> tuple(taeda.nn.LPPool2d(2, 2)(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, *self._options())


class LPPool3d(_LPPoolNd):
    """(sum of x^p over each window)^(1/p) of (N, C, D, H, W) or (C, D, H, W).

    Args:
        norm_type: the exponent p; infinity takes the maximum.
        kernel_size, stride, ceil_mode: as for `MaxPool3d`.

    Example:
        >>> tuple(taeda.nn.LPPool3d(2, 2)(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, *self._options())


class _AdaptivePoolNd(Module):
    """Pools whose windows follow from the size of the output."""

    __constants__ = ["output_size"]

    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return described(self, "output_size")


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class _AdaptiveAvgPoolNd(_AdaptivePoolNd):
    pass


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows chosen so that the output has the wanted size.

    Window i of n over length L spans floor(i L / n) to ceil((i + 1) L / n).

    Args:
        output_size: one number for each dimension or for all; None keeps a size.
        return_indices: also the places of the maxima.

    Example:
        >>> tuple(taeda.nn.AdaptiveMaxPool1d(2)(taeda.ones(1, 4)).shape)
        (1, 2)
    """

    def forward(self, input: Tensor):
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows chosen so that the output has the wanted size.

    Window i of n over length L spans floor(i L / n) to ceil((i + 1) L / n).

    Args:
        output_size: one number for each dimension or for all; None keeps a size.
        return_indices: also the places of the maxima.

    Example:
        >>> tuple(taeda.nn.AdaptiveMaxPool2d(2)(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    def forward(self, input: Tensor):
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows chosen so that the output has the wanted size.

    Window i of n over length L spans floor(i L / n) to ceil((i + 1) L / n).

    Args:
        output_size: one number for each dimension or for all; None keeps a size.
        return_indices: also the places of the maxima.

    Example:
        >>> tuple(taeda.nn.AdaptiveMaxPool3d(2)(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    def forward(self, input: Tensor):
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows chosen so that the output has the wanted size.

    Args:
        output_size: as for `AdaptiveMaxPool1d`.

    Example:
        >>> tuple(taeda.nn.AdaptiveAvgPool1d(2)(taeda.ones(1, 4)).shape)
        (1, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of windows chosen so that the output has the wanted size.

    Args:
        output_size: as for `AdaptiveMaxPool2d`.

    Example:
        >>> tuple(taeda.nn.AdaptiveAvgPool2d(2)(taeda.ones(1, 4, 4)).shape)
        (1, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of windows chosen so that the output has the wanted size.

    Args:
        output_size: as for `AdaptiveMaxPool3d`.

    Example:
        >>> tuple(taeda.nn.AdaptiveAvgPool3d(2)(taeda.ones(1, 4, 4, 4)).shape)
        (1, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
