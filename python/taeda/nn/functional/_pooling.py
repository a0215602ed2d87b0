"""Pooling: average, maximum, power mean, adaptive and fractional, and unpooling."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import dispatch, native, overrides_any, overrides_one, relay
from .._types import MaybeTensor

__name__ = __package__

avg_pool1d, avg_pool2d, avg_pool3d = (native(f"avg_pool{d}d") for d in (1, 2, 3))
adaptive_avg_pool1d = native("adaptive_avg_pool1d")

_max = {d: native(f"max_pool{d}d") for d in (1, 2, 3)}
_max_indices = {d: native(f"max_pool{d}d_with_indices") for d in (1, 2, 3)}
_adaptive_avg = {d: native(f"adaptive_avg_pool{d}d") for d in (2, 3)}
_adaptive_max = {d: native(f"adaptive_max_pool{d}d") for d in (1, 2, 3)}
_fractional = {d: native(f"fractional_max_pool{d}d") for d in (2, 3)}
_unpool = {d: native(f"max_unpool{d}d") for d in (2, 3)}


def _times(value, d: int):
    """`value` for each of `d` dimensions."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * d


def _max_pool(shown, d, want, input, window, options):
    stride, padding, dilation, ceil_mode = options
    if overrides_one(input):
        shown = globals()[f"max_pool{d}d_with_indices"] if want else shown
        return dispatch(
            shown,
            (input,),
            input,
            window,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
            return_indices=want,
        )
    stride = [] if stride is None else stride
    pool = (_max_indices if want else _max)[d]
    return pool(input, window, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest value of each window of (N, C, L) or (C, L).

    Output length: floor((L + 2 padding - dilation (kernel - 1) - 1) / stride + 1).

    Args:
        input (Tensor): any real dtype.
        kernel_size: length of the window.
        stride: step from window to window; default the window's length.
        padding: -inf put at both ends, at most half the window.
        dilation: distance between the elements of a window.
        ceil_mode: round the output length up.
        return_indices: also int64 places of the maxima, for `max_unpool1d`.

    Example:
        >>> x = taeda.tensor([[1.0, 4.0, 2.0, 3.0]])
        >>> taeda.nn.functional.max_pool1d(x, 2)
        tensor([[4., 3.]])
    """
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool1d, 1, return_indices, input, kernel_size, options)


def max_pool2d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest value of each window of (N, C, H, W) or (C, H, W).

    Arguments as `max_pool1d`, each one number or two.

    Example:
        >>> x = taeda.tensor([[[1.0, 4.0], [2.0, 3.0]]])
        >>> taeda.nn.functional.max_pool2d(x, 2)
        tensor([[[4.]]])
    """
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool2d, 2, return_indices, input, kernel_size, options)


def max_pool3d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """The largest value of each window of (N, C, D, H, W) or (C, D, H, W).

    Arguments as `max_pool1d`, each one number or three.

    Example:
        >>> taeda.nn.functional.max_pool3d(taeda.ones(1, 1, 2, 2), (1, 2, 2))
        tensor([[[[1.]]]])
    """
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool3d, 3, return_indices, input, kernel_size, options)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool1d` that always returns the pair (values, indices)."""
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool1d_with_indices, 1, True, input, kernel_size, options)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool2d` that always returns the pair (values, indices)."""
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool2d_with_indices, 2, True, input, kernel_size, options)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """`max_pool3d` that always returns the pair (values, indices)."""
    options = (stride, padding, dilation, ceil_mode)
    return _max_pool(max_pool3d_with_indices, 3, True, input, kernel_size, options)


def _filled(output_size, input):
    """An output size whose None entries are the input's own sizes."""
    if not isinstance(output_size, (tuple, list)):
        return output_size
    from ..modules.utils import _list_with_default

    return _list_with_default(output_size, input.size())


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Averages of windows chosen so that the output has the wanted size.

    Window i of n over length L spans floor(i L / n) to ceil((i + 1) L / n).

    Args:
        input (Tensor): (N, C, H, W) or (C, H, W), floating.
        output_size: (H, W), one number for both, None to keep a size.

    Example:
        >>> taeda.nn.functional.adaptive_avg_pool2d(taeda.ones(1, 4, 4), 1)
        tensor([[[1.]]])
    """
    if overrides_one(input):
        return relay(adaptive_avg_pool2d, (input,), locals())
    return _adaptive_avg[2](input, _filled(output_size, input))


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """`adaptive_avg_pool2d` for (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> taeda.nn.functional.adaptive_avg_pool3d(taeda.ones(1, 2, 2, 2), 1)
        tensor([[[[1.]]]])
    """
    if overrides_one(input):
        return relay(adaptive_avg_pool3d, (input,), locals())
    return _adaptive_avg[3](input, _filled(output_size, input))


def _adaptive_max_pool(shown, d, input, output_size, want):
    if overrides_one(input):
        return dispatch(shown, (input,), input, output_size, return_indices=want)
    size = output_size if d == 1 else _filled(output_size, input)
    values, indices = _adaptive_max[d](input, size)
    return (values, indices) if want else values


def adaptive_max_pool1d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima of windows chosen as by `adaptive_avg_pool2d`, of (N, C, L) or (C, L).

    Args:
        input (Tensor): floating.
        output_size: wanted length.
        return_indices: also the places of the maxima.

    Example:
        >>> x = taeda.tensor([[1.0, 4.0, 2.0, 3.0]])
        >>> taeda.nn.functional.adaptive_max_pool1d(x, 2)
        tensor([[4., 3.]])
    """
    shown = adaptive_max_pool1d
    return _adaptive_max_pool(shown, 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size, return_indices: bool = False):
    """`adaptive_max_pool1d` for images.

    Example:
        >>> taeda.nn.functional.adaptive_max_pool2d(taeda.ones(1, 4, 4), 1)
        tensor([[[1.]]])
    """
    shown = adaptive_max_pool2d
    return _adaptive_max_pool(shown, 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size, return_indices: bool = False):
    """`adaptive_max_pool1d` for volumes.

    Example:
        >>> taeda.nn.functional.adaptive_max_pool3d(taeda.ones(1, 2, 2, 2), 1)
        tensor([[[[1.]]]])
    """
    shown = adaptive_max_pool3d
    return _adaptive_max_pool(shown, 3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
):
    """`adaptive_max_pool1d` that always returns (values, indices)."""
    shown = adaptive_max_pool1d_with_indices
    return _adaptive_max_pool(shown, 1, input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
):
    """`adaptive_max_pool2d` that always returns (values, indices)."""
    shown = adaptive_max_pool2d_with_indices
    return _adaptive_max_pool(shown, 2, input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
):
    """`adaptive_max_pool3d` that always returns (values, indices)."""
    shown = adaptive_max_pool3d_with_indices
    return _adaptive_max_pool(shown, 3, input, output_size, True)


def _lp_pool(shown, d, input, p, window, stride, ceil_mode):
    if overrides_one(input):
        options = {"stride": stride, "ceil_mode": ceil_mode}
        return dispatch(shown, (input,), input, p, window, **options)
    if p in (float("inf"), -float("inf")):
        sign = 1 if p > 0 else -1
        stride = [] if stride is None else stride
        return sign * _max[d](sign * input.abs(), window, stride, 0, 1, ceil_mode)
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[d - 1]
    if stride is None:
        mean = average(input.pow(p), window, padding=0, ceil_mode=ceil_mode)
    else:
        mean = average(input.pow(p), window, stride, 0, ceil_mode)
    count = 1
    for n in _times(window, d):
        count *= n
    # A negative mean (odd p) counts as zero, so that the root is defined.
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / p)


def lp_pool1d(
    input: Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x^p over each window)^(1/p) of (N, C, L) or (C, L).

    Args:
        input (Tensor): floating.
        norm_type: the exponent p; infinity takes the maximum.
        kernel_size, stride, ceil_mode: as for `max_pool1d`.

    Example:
        >>> x = taeda.tensor([[3.0, 4.0]])
        >>> taeda.nn.functional.lp_pool1d(x, 2, 2)
        tensor([[5.]])
    """
    return _lp_pool(lp_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """`lp_pool1d` for images.

    Example:
        >>> taeda.nn.functional.lp_pool2d(taeda.ones(1, 2, 2), 2, 2)
        tensor([[[2.]]])
    """
    return _lp_pool(lp_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """`lp_pool1d` for volumes.

    Example:
        >>> taeda.nn.functional.lp_pool3d(taeda.ones(1, 2, 2, 2), 1, 2)
        tensor([[[[8.]]]])
    """
    return _lp_pool(lp_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The size that was pooled, or the wanted one if it can have been that."""
    d = len(kernel_size)
    sizes = input.size()[-d:]
    default = [
        (n - 1) * s + k - 2 * p
        for n, k, s, p in zip(sizes, kernel_size, stride, padding, strict=False)
    ]
    if output_size is None:
        result = default
    else:
        result = output_size[2:] if len(output_size) == d + 2 else output_size
        if len(result) != d:
            raise ValueError(
                f"output_size should be a sequence containing {d} or {d + 2} "
                f"elements, but it has a length of '{len(result)}'"
            )
        for i, (want, usual, s) in enumerate(
            zip(result, default, stride, strict=False)
        ):
            if abs(want - usual) >= s:
                raise ValueError(
                    f'invalid output_size "{result}" (dim {i} must be between '
                    f"{usual - s} and {usual + s})"
                )
    for i, n in enumerate(result):
        if n < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial "
                f"dimensions, but got output_size[{i}]={n}"
            )
    return list(result)


def _max_unpool(shown, d, input, indices, window, stride, padding, output_size):
    if overrides_any(input, indices):
        options = {"stride": stride, "padding": padding, "output_size": output_size}
        return dispatch(shown, (input, indices), input, indices, window, **options)
    window, padding = _times(window, d), _times(padding, d)
    stride = window if stride is None else _times(stride, d)
    size = _unpool_output_size(input, window, stride, padding, output_size)
    if d == 1:
        wide = _unpool[2](input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
        return wide.squeeze(-1)
    return _unpool[d](input, indices, size, *((stride, padding) if d == 3 else ()))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    output_size=None,
) -> Tensor:
    """Put pooled maxima back to their places; zero elsewhere.

    Args:
        input (Tensor): what `max_pool1d` gave.
        indices (Tensor): the places it gave.
        kernel_size, stride, padding: those of the pooling.
        output_size: the pooled size, where several pool to the same.

    Raises:
        ValueError: `output_size` cannot have been pooled to `input`.

    Example:
        >>> x = taeda.tensor([[1.0, 4.0, 2.0, 3.0]])
        >>> y, where = taeda.nn.functional.max_pool1d(x, 2, return_indices=True)
        >>> taeda.nn.functional.max_unpool1d(y, where, 2)
        tensor([[0., 4., 0., 3.]])
    """
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool(max_unpool1d, 1, input, indices, *options)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    output_size=None,
) -> Tensor:
    """`max_unpool1d` for images."""
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool(max_unpool2d, 2, input, indices, *options)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    output_size=None,
) -> Tensor:
    """`max_unpool1d` for volumes."""
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool(max_unpool3d, 3, input, indices, *options)


def _fractional_pool(shown, d, input, window, size, ratio, want, samples):
    if overrides_any(input, samples):
        options = {"output_size": size, "output_ratio": ratio, "return_indices": want}
        tensors = (input, samples)
        return dispatch(
            shown, tensors, input, window, _random_samples=samples, **options
        )
    name = f"fractional_max_pool{d}d"
    if size is None:
        if ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output_size or an output_ratio"
            )
        ratio = _times(ratio, d)
        if len(ratio) != d:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of "
                f"Ints. It takes one or {d}, got {ratio}"
            )
        size = [int(n * r) for n, r in zip(input.shape[-d:], ratio, strict=False)]
    if samples is None:
        n = 1 if input.dim() == d + 1 else input.size(0)
        kind = {"dtype": input.dtype, "device": input.device}
        samples = taeda.rand(n, input.size(-d - 1), d, **kind)
    values, indices = _fractional[d](input, window, size, samples)
    return (values, indices) if want else values


def fractional_max_pool2d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: MaybeTensor = None,
):
    """Maxima of windows whose steps are drawn at random.

    Graham, "Fractional Max-Pooling", 2014.

    Args:
        input (Tensor): (N, C, H, W) or (C, H, W), floating.
        kernel_size: size of the window.
        output_size: wanted size, or
        output_ratio: its ratio to the input's, in (0, 1).
        return_indices: also the places of the maxima.

    Raises:
        ValueError: neither size nor ratio, or ratios of the wrong number.

    Example:
        >>> x = taeda.ones(1, 4, 4)
        >>> taeda.nn.functional.fractional_max_pool2d(x, 2, output_size=1)
        tensor([[[1.]]])
    """
    places = (input, kernel_size, output_size, output_ratio)
    shown = fractional_max_pool2d
    return _fractional_pool(shown, 2, *places, return_indices, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: MaybeTensor = None,
):
    """`fractional_max_pool2d` for volumes."""
    places = (input, kernel_size, output_size, output_ratio)
    shown = fractional_max_pool3d
    return _fractional_pool(shown, 3, *places, return_indices, _random_samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: MaybeTensor = None,
):
    """`fractional_max_pool2d` that always returns (values, indices)."""
    places = (input, kernel_size, output_size, output_ratio)
    shown = fractional_max_pool2d_with_indices
    return _fractional_pool(shown, 2, *places, True, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: MaybeTensor = None,
):
    """`fractional_max_pool3d` that always returns (values, indices)."""
    places = (input, kernel_size, output_size, output_ratio)
    shown = fractional_max_pool3d_with_indices
    return _fractional_pool(shown, 3, *places, True, _random_samples)
