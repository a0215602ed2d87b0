"""The parts of batch normalization that several processes compute together.

A channel is dim 1. `invstd` is 1 / sqrt(var + eps) of the biased variance. PyTorch has
all but `batch_norm_update_stats` for GPUs alone; here they are sums and products of
ordinary operators, for any device. Half and bfloat16 are summed in float32.
"""

from __future__ import annotations

import taeda

__all__ = [
    "batch_norm_backward_elemt",
    "batch_norm_backward_reduce",
    "batch_norm_elemt",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_stats",
    "batch_norm_update_stats",
]


def _others(x) -> list[int]:
    return [d for d in range(x.dim()) if d != 1]


def _sums(x):
    """In the dtype in which sums are taken."""
    half = x.dtype in (taeda.float16, taeda.bfloat16)
    return x.float() if half else x


def _along(values, x):
    """One value a channel, to be broadcast over `x`."""
    return values.view(1, -1, *[1] * (x.dim() - 2))


def batch_norm_stats(input, eps: float) -> tuple:
    """Mean and `invstd` of each channel.

    Args:
        input (Tensor): (N, C, *).
        eps: added to the variance.

    Example:
        >>> taeda.batch_norm_stats(taeda.tensor([[0.0], [2.0]]), 0.0)[0]
        tensor([1.])
    """
    var, mean = taeda.var_mean(_sums(input), _others(input), correction=0)
    return mean, taeda.rsqrt(var + eps)


def batch_norm_update_stats(input, running_mean, running_var, momentum: float):
    """Mean and biased variance of each channel; running ones move towards them.

    Args:
        input (Tensor): (N, C, *).
        running_mean, running_var (Tensor or None): (C), written; the variance that
            goes in is the unbiased one.
        momentum: the share of the new values.

    Raises:
        RuntimeError: `input` has no elements.
    """
    if input.numel() == 0:
        raise RuntimeError(
            "batch_norm_update_stats: input tensor must have at least one element, but "
            f"got input_sizes = {list(input.shape)}"
        )
    var, mean = taeda.var_mean(_sums(input), _others(input), correction=0)
    count = input.numel() // input.size(1)
    _move(running_mean, running_var, mean, var, count, momentum)
    return mean, var


def _move(running_mean, running_var, mean, var, count, momentum: float) -> None:
    with taeda.no_grad():
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (count / (count - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)


def batch_norm_elemt(input, weight, bias, mean, invstd, eps: float, *, out=None):
    """(input - mean) * invstd * weight + bias, by channel.

    Args:
        input (Tensor): (N, C, *).
        weight, bias (Tensor or None): (C).
        mean, invstd (Tensor): (C), of `batch_norm_stats`.
        eps: ignored, it is in `invstd`.
    """
    scale = invstd if weight is None else invstd * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    result = _sums(input) * _along(scale, input) + _along(shift, input)
    result = result.to(input.dtype)
    return result if out is None else out.resize_(result.shape).copy_(result)


def batch_norm_gather_stats_with_counts(
    input, mean, invstd, running_mean, running_var, momentum: float, eps: float, counts
) -> tuple:
    """Mean and `invstd` of what several processes have, from those of each.

    Args:
        input (Tensor): whose dtype results of a GPU would have; not read.
        mean, invstd (Tensor): (processes, C).
        running_mean, running_var (Tensor or None): as `batch_norm_update_stats`.
        counts (Tensor): (processes), elements of a channel.
    """
    share = counts.to(mean.dtype).view(-1, 1)
    total = share.sum()
    whole = (mean * share).sum(0) / total
    inner = invstd.reciprocal().square() - eps
    var = ((inner + (mean - whole).square()) * share).sum(0) / total
    _move(running_mean, running_var, whole, var, total, momentum)
    return whole, taeda.rsqrt(var + eps)


def batch_norm_gather_stats(
    input,
    mean,
    invstd,
    running_mean,
    running_var,
    momentum: float,
    eps: float,
    count: int,
) -> tuple:
    """The same where each process has as many elements of a channel, `count`."""
    counts = taeda.full((mean.size(0),), count, device=mean.device, dtype=mean.dtype)
    return batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


def batch_norm_backward_reduce(
    grad_out, input, mean, invstd, weight, input_g: bool, weight_g: bool, bias_g: bool
) -> tuple:
    """The sums by channel that gradients need.

    Args:
        grad_out, input (Tensor): (N, C, *).
        mean, invstd (Tensor): (C).
        weight (Tensor or None): (C); not read.
        input_g, weight_g, bias_g: which gradients are wanted.

    Returns:
        The sum of `grad_out`, that of its product with `input - mean`, the gradients
        of weight and bias; None for what is not wanted.
    """
    dims, grad = _others(input), _sums(grad_out)
    total = grad.sum(dims)
    moment = (grad * (_sums(input) - _along(mean, input))).sum(dims)
    sums = (total, moment) if input_g else (None, None)
    of_weight = moment * invstd if weight_g else None
    return *sums, of_weight, total if bias_g else None


def batch_norm_backward_elemt(
    grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count
):
    """The gradient of the input, from the sums of all processes.

    Args:
        grad_out, input (Tensor): (N, C, *).
        mean, invstd (Tensor): (C). weight (Tensor or None): (C).
        sum_dy, sum_dy_xmu (Tensor): (C), of `batch_norm_backward_reduce`, added up.
        count (Tensor): the elements of a channel, one number for each process.
    """
    total = count.sum()
    slope = _along(invstd.square() * sum_dy_xmu / total, input)
    inner = _sums(grad_out) - _along(sum_dy / total, input)
    inner = inner - (_sums(input) - _along(mean, input)) * slope
    scale = invstd if weight is None else invstd * weight
    return (inner * _along(scale, input)).to(input.dtype)
