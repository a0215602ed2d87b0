"""Rounding to the values that a quantized tensor could have, in ordinary tensors.

q = clamp(round(x / scale) + zero_point, quant_min, quant_max), and what is returned is
(q - zero_point) * scale. The gradient passes where q is not clamped.
"""

from __future__ import annotations

import taeda
from taeda.autograd import Function

__all__ = [
    "choose_qparams_optimized",
    "dequantize",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "fused_moving_avg_obs_fake_quant",
]


class _Rounded(Function):
    @staticmethod
    def forward(ctx, x, scale, zero, low, high):
        # 1 / scale is multiplied, as in PyTorch: it decides which way ties go.
        q = taeda.round(x * scale.reciprocal() + zero)
        kept = q.clamp(low, high)
        ctx.save_for_backward(q == kept)
        return ((kept - zero) * scale).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None, None


def _check_range(name: str, zero, low: int, high: int) -> None:
    if low > high:
        raise RuntimeError(
            f"{name}: `quant_min` should be less than or equal to `quant_max`, got "
            f"{low} and {high}"
        )
    values = zero.tolist() if isinstance(zero, taeda.Tensor) else zero
    for value in values if isinstance(values, list) else [values]:
        if not low <= value <= high:
            raise RuntimeError(
                f"{name}: `zero_point` must be between `quant_min` and `quant_max`, "
                f"got {value} outside of {low} to {high}"
            )


def fake_quantize_per_tensor_affine(
    input, scale, zero_point, quant_min: int, quant_max: int
):
    """Values as 8-bit (or other) integers would hold them, with one scale for all.

    Args:
        input (Tensor): floating point.
        scale (float or Tensor of one): the distance of two values.
        zero_point (int or Tensor of one): the integer that stands for 0.
        quant_min, quant_max: the range of the integers.

    Returns:
        A tensor of the input's dtype and sizes.

    Raises:
        RuntimeError: an empty range, or a zero point outside of it.

    Example:
        >>> x = taeda.tensor([0.04, 0.06, 9.0])
        >>> taeda.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 2)
        tensor([0.0000, 0.1000, 0.2000])
    """
    name = "fake_quantize_per_tensor_affine"
    _check_range(name, zero_point, quant_min, quant_max)
    place = {"device": input.device, "dtype": taeda.float32}
    scale = taeda.as_tensor(scale, **place)
    zero = taeda.as_tensor(zero_point, **place)
    return _Rounded.apply(
        input, scale.reshape(()), zero.reshape(()), quant_min, quant_max
    )


def fake_quantize_per_channel_affine(
    input, scale, zero_point, axis: int, quant_min: int, quant_max: int
):
    """The same with a scale and a zero point for each place along a dim.

    Args:
        input (Tensor): floating point.
        scale (Tensor): float32, as long as that dim.
        zero_point (Tensor): int32, or floating point as learned ones are.
        axis: the dim.
        quant_min, quant_max: the range of the integers.

    Raises:
        RuntimeError: other dtypes or lengths, an empty range, a zero point outside.

    Example:
        >>> x, scale = taeda.tensor([[1.0], [1.0]]), taeda.tensor([1.0, 0.4])
        >>> zero = taeda.zeros(2, dtype=taeda.int32)
        >>> taeda.fake_quantize_per_channel_affine(x, scale, zero, 0, 0, 9).tolist()
        [[1.0], [0.800000011920929]]
    """
    name = "fake_quantize_per_channel_affine"
    if scale.dtype != taeda.float32:
        raise RuntimeError(f"{name}: Scale must be Float, found {scale.dtype}")
    if zero_point.dtype not in (taeda.int32, taeda.float32, taeda.float16):
        raise RuntimeError(
            f"{name}: Zero-point must be Int32, Float or Half, found {zero_point.dtype}"
        )
    wanted = input.size(axis)
    for what, given in (("scale", scale), ("zero-point", zero_point)):
        if given.shape != (wanted,):
            raise RuntimeError(
                f"{name}: dimensions of {what} should be ({wanted},), got "
                f"{tuple(given.shape)}"
            )
    if zero_point.dtype == taeda.int32:
        _check_range(name, zero_point, quant_min, quant_max)
    shape = [1] * input.dim()
    shape[axis] = wanted
    scale, zero = (t.to(taeda.float32).view(shape) for t in (scale, zero_point))
    return _Rounded.apply(input, scale, zero, quant_min, quant_max)


def fused_moving_avg_obs_fake_quant(
    input,
    observer_on,
    fake_quant_on,
    running_min,
    running_max,
    scale,
    zero_point,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
):
    """Observes the range of values, and rounds them by it.

    Args:
        input (Tensor): floating point.
        observer_on, fake_quant_on (Tensor): of one element: whether to do either.
        running_min, running_max (Tensor): the range so far, written; where it is
            infinite it begins with this input's.
        scale, zero_point (Tensor): written when the range was observed.
        averaging_const: the share of the new range.
        quant_min, quant_max: the range of the integers.
        ch_axis: the dim that has a range for each place with `per_row_fake_quant`.
        symmetric_quant: the range is the same on both sides of 0.
    """
    if observer_on.item():
        with taeda.no_grad():
            axis = ch_axis if per_row_fake_quant else None
            _observe(input.detach(), running_min, running_max, averaging_const, axis)
            found = _parameters(
                running_min, running_max, quant_min, quant_max, symmetric_quant
            )
            scale.resize_(found[0].shape).copy_(found[0])
            zero_point.resize_(found[1].shape).copy_(found[1])
    if not fake_quant_on.item():
        return input.clone()
    if per_row_fake_quant:
        zero = zero_point.to(taeda.int32)
        return fake_quantize_per_channel_affine(
            input, scale, zero, ch_axis, quant_min, quant_max
        )
    return fake_quantize_per_tensor_affine(
        input, scale, zero_point, quant_min, quant_max
    )


def _observe(x, low, high, share: float, axis: int | None) -> None:
    rows = x.reshape(1, -1) if axis is None else x.movedim(axis, 0).flatten(1)
    for running, found in ((low, rows.amin(1)), (high, rows.amax(1))):
        if running.numel() == 0:
            running.resize_(found.shape).copy_(found)
            continue
        found = found.view_as(running).to(running.dtype)
        moved = running + share * (found - running)
        running.copy_(taeda.where(running.isinf(), found, moved))


def _parameters(low, high, quant_min: int, quant_max: int, symmetric: bool) -> tuple:
    """Scale and zero point by which a range that holds 0 fills the integers."""
    low, high = low.clamp(max=0).double(), high.clamp(min=0).double()
    if symmetric:
        # Two's complement has one value more below 0 than above.
        above = (quant_max - quant_min) // 2
        unit = taeda.maximum(-low / (above + 1), high / above)
        both = (low < 0) & (high > 0)
        low = taeda.where(both, -unit * (above + 1), low)
        high = taeda.where(both, unit * above, high)
    scale = (high - low) / (quant_max - quant_min)
    scale = taeda.where(scale.float() == 0, 0.1, scale)
    scale = scale.clamp(min=2.0**-32)
    # Of the two ends, the one whose error is smaller gives the zero point.
    by_low = quant_min - low / scale
    by_high = quant_max - high / scale
    error_low = abs(quant_min) + (low / scale).abs()
    error_high = abs(quant_max) + (high / scale).abs()
    zero = taeda.where(error_low < error_high, by_low, by_high)
    if symmetric:
        middle = (quant_min + quant_max + 1) // 2 if quant_min == 0 else 0
        zero = taeda.where(both, middle, zero)
    return scale.float(), zero.round().clamp(quant_min, quant_max).to(taeda.int32)


def choose_qparams_optimized(
    input, numel: int, n_bins: int, ratio: float, bit_width: int
) -> tuple:
    """A range that loses least when values are rounded to few bits within it.

    From the whole range, an end at a time is moved inward by one bin, the one whose
    move loses less. Of the ranges on this way whose two moves both lose more, the one
    that loses least is taken, if it loses less than the whole.

    Args:
        input (Tensor): one row, float32.
        numel: how many of its elements count.
        n_bins: parts of the whole range.
        ratio: the part of it that may be given up.
        bit_width: of the integers.

    Returns:
        The upper and the lower end, tensors of one element.
    """
    row = input.reshape(-1)[:numel].float()
    if numel < 0 or numel > input.numel():
        raise RuntimeError(
            f"choose_qparams_optimized: numel {numel} of {input.numel()} elements"
        )
    # Zero-dimensional tensors: sums of steps are those of float32.
    low, high = row.min(), row.max()
    step = (high - low) / n_bins
    least = int(n_bins * (1.0 - ratio))
    here = _loss(row, low, high, bit_width)
    best, ends = here, (low, high)
    while low + step * least < high:
        inward = (low + step, high), (low, high - step)
        losses = [_loss(row, *range_, bit_width) for range_ in inward]
        if here < min(*losses, best):
            best, ends = here, (low, high)
        chosen = 0 if losses[0] < losses[1] else 1
        here, (low, high) = losses[chosen], inward[chosen]
    return ends[1].view(1), ends[0].view(1)


def _loss(row, low, high, bits: int) -> float:
    """What rounding loses, with the lower end and the scale kept in half precision, as
    tables of embeddings keep them."""
    low = low.half().float()
    scale = ((high - low) / (2**bits - 1)).half().float()
    scale = taeda.where(scale == 0, 1.0, scale)
    q = ((row - low) * scale.reciprocal()).round().clamp(0, 2**bits - 1)
    return (row - (q * scale + low)).square().sum().sqrt().item()


def dequantize(input=None, *, tensors=None):
    """The values of a tensor in float32.

    Args:
        input (Tensor): of any dtype; there are no quantized tensors here. A list of
            quantized tensors in PyTorch.
        tensors: another name for the list.

    Raises:
        NotImplementedError: a list, whose tensors would all have to be quantized.

    Example:
        >>> taeda.dequantize(taeda.ones(1, dtype=taeda.float16)).dtype
        taeda.float32
    """
    if input is None:
        input = tensors
    if isinstance(input, (tuple, list)):
        raise NotImplementedError(
            "Could not run 'aten::dequantize.tensors': there are no quantized tensors"
        )
    return input.to(taeda.float32)
