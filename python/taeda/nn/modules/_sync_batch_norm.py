"""Batch normalization whose statistics are of all ranks' batches."""

from __future__ import annotations

import taeda

__all__ = ["normalize"]


def _totals(input, group):
    """Sums, sums of squares about this rank's mean, and counts of all ranks.

    The variances are joined about the common mean, since a difference of large squares
    would lose what a small variance is.
    """
    from taeda.distributed.nn.functional import all_reduce

    dims = [d for d in range(input.dim()) if d != 1]
    count = input.numel() // input.shape[1]
    sums = input.sum(dims)
    first = all_reduce(taeda.cat([sums, sums.new_full((1,), count)]), group=group)
    total = first[-1].detach()
    mean = first[:-1] / total
    shape = [1, -1] + [1] * (input.dim() - 2)
    about = (input - mean.view(shape)).square().sum(dims)
    variance = all_reduce(about, group=group) / total
    return mean, variance, total, shape


def normalize(norm, input):
    """The output of a `SyncBatchNorm` in training.

    Args:
        norm: the layer; its running statistics are updated.
        input: N x C x ..., the same C at every rank.
    """
    group = norm.process_group or taeda.distributed.group.WORLD
    wide = input.float() if input.dtype in (taeda.float16, taeda.bfloat16) else input
    mean, variance, total, shape = _totals(wide, group)
    if norm.training and norm.track_running_stats:
        with taeda.no_grad():
            norm.num_batches_tracked.add_(1)
            factor = norm.momentum
            if factor is None:
                factor = 1.0 / float(norm.num_batches_tracked)
            unbiased = variance * (total / (total - 1).clamp(min=1))
            for running, found in (
                (norm.running_mean, mean),
                (norm.running_var, unbiased),
            ):
                running.mul_(1 - factor).add_(found.to(running.dtype) * factor)
    out = (wide - mean.view(shape)) * (variance + norm.eps).rsqrt().view(shape)
    if norm.weight is not None:
        out = out * norm.weight.view(shape)
    if norm.bias is not None:
        out = out + norm.bias.view(shape)
    return out.to(input.dtype)
