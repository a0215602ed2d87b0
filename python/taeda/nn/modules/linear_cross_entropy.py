"""Linear layer and cross entropy in one, chunk by chunk on demand."""

from __future__ import annotations

import math

import taeda

from .. import functional as F
from .._native import warn

_CHUNKED = ("mean", "sum", "none")


def _check(input, weight, target, bias, ignore_index):
    """Refuse shapes that do not fit; returns the shape of the scores."""
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"expected input with dimensionality 1 or 2, got {input.dim()}"
        )
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    classes, *inner, width = weight.shape
    if input.shape[-1] != width:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {width}, respectively"
        )
    if bias is not None and tuple(bias.shape) != (classes, *inner):
        raise RuntimeError(
            f"expected linear_bias shape {(classes, *inner)}, got {tuple(bias.shape)}"
        )
    if inner and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} "
            f"requires batched input, (N, {width}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    scores = (*input.shape[:-1], classes, *inner)
    if tuple(target.shape) == scores and ignore_index is not None:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities"
        )
    return scores


def compute(
    input, weight, target, bias, factors, reduction, ignore_index, smoothing, options
):
    """What `nn.functional.linear_cross_entropy` returns."""
    scores = _check(input, weight, target, bias, ignore_index)
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        plain = reduction in _CHUNKED and smoothing == 0.0 and weight.dim() == 2
        if plain and target.dtype == taeda.int64:
            places = (factors, reduction, ignored)
            return _in_chunks(input, weight, target, bias, *places, options)
        warn(
            "linear_cross_entropy: `options` has no effect: chunks need a reduction in "
            f"{_CHUNKED}, no label smoothing, int64 targets and a 2-D weight",
            level=4,
        )
    rows = math.prod(scores[input.dim() - 1 :])
    flat = weight.reshape(rows, input.shape[-1])
    flat_bias = None if bias is None else bias.reshape(rows)
    logits = F.linear(input, flat, flat_bias).reshape(scores)
    return F.cross_entropy(
        logits,
        target,
        weight=factors,
        reduction=reduction,
        ignore_index=ignored,
        label_smoothing=smoothing,
    )


def _in_chunks(input, weight, target, bias, factors, reduction, ignored, options):
    """The same, some rows at a time: bounds the scores that live at once.

    Under autograd each chunk's scores stay until backward, as in the plain form.
    """
    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    half = input.dtype in (taeda.float16, taeda.bfloat16)
    kind = options.acc_dtype or (taeda.float32 if half else input.dtype)
    count = options._rows(input.shape[0], input.shape[1], weight.shape[0])
    losses = []
    for rows, wanted in zip(input.split(count), target.split(count), strict=False):
        logits = F.linear(rows, weight, bias).to(kind)
        own = None if factors is None else factors.to(kind)
        losses.append(
            F.cross_entropy(logits, wanted, own, ignore_index=ignored, reduction="none")
        )
    loss = taeda.cat(losses) if losses else input.new_zeros(0)
    if reduction == "none":
        result = loss.squeeze(0) if single else loss
    elif reduction == "sum":
        result = loss.sum()
    else:
        seen = target != ignored
        if factors is None:
            total = seen.sum()
        else:
            total = factors[target.masked_fill(~seen, 0)].masked_fill(~seen, 0).sum()
        result = loss.sum() / total
    return result.to(input.dtype)
