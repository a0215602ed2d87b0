"""Losses with a margin: ranking, hinge, embedding and triplet losses."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native, overrides_any, relay
from .._reduction import chosen, legacy_get_string, reduced
from .._types import Flag, MaybeTensor

__name__ = __package__

_ranking, _hinge = native("margin_ranking_loss"), native("hinge_embedding_loss")
_multilabel, _multi = native("multilabel_margin_loss"), native("multi_margin_loss")
_soft, _cosine = native("soft_margin_loss"), native("cosine_embedding_loss")
_triplet = native("triplet_margin_loss")
_log_sigmoid, _pairwise = native("log_sigmoid"), native("pairwise_distance")


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -y (x1 - x2) + margin), y = 1 where x1 is to rank higher, else -1.

    Args:
        input1, input2, target (Tensor): of one rank, broadcast.
        margin: distance wanted.
        reduction, size_average, reduce: as for `cross_entropy`.

    Raises:
        RuntimeError: ranks differ.

    Example:
        >>> f = taeda.nn.functional.margin_ranking_loss
        >>> f(taeda.zeros(1), taeda.ones(1), taeda.ones(1))
        tensor(1.)
    """
    if overrides_any(input1, input2, target):
        return relay(margin_ranking_loss, (input1, input2, target), locals())
    tensors = (input1, input2, target)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but "
            f"got sizes: input1: {input1.size()}, input2: {input2.size()}, target: "
            f"{target.size()} "
        )
    return _ranking(*tensors, margin, chosen(reduction, size_average, reduce))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """x where y = 1, max(0, margin - x) where y = -1; x is a distance.

    Example:
        >>> f = taeda.nn.functional.hinge_embedding_loss
        >>> f(taeda.full((1,), 3.0), taeda.ones(1))
        tensor(3.)
    """
    if overrides_any(input, target):
        return relay(hinge_embedding_loss, (input, target), locals())
    return _hinge(input, target, margin, chosen(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over labels j and other classes i of max(0, 1 - x_j + x_i) / C.

    Args:
        input (Tensor): (N, C) or (C,) scores.
        target (Tensor): int64 of that shape; labels up to the first -1 count.
        reduction, size_average, reduce: as for `cross_entropy`.

    Example:
        >>> f = taeda.nn.functional.multilabel_margin_loss
        >>> f(taeda.zeros(2), taeda.tensor([0, -1]))
        tensor(0.5000)
    """
    if overrides_any(input, target):
        return relay(multilabel_margin_loss, (input, target), locals())
    return _multilabel(input, target, chosen(reduction, size_average, reduce))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-y x)), y 1 or -1.

    Example:
        >>> taeda.nn.functional.soft_margin_loss(taeda.zeros(1), taeda.ones(1))
        tensor(0.6931)
    """
    if overrides_any(input, target):
        return relay(soft_margin_loss, (input, target), locals())
    return _soft(input, target, chosen(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross entropy of scores, averaged over the classes (last dimension).

    Args:
        input, target (Tensor): (N, C) or (C,); targets are 0 or 1.
        weight (Tensor): (C,), a factor for each class.
        reduction, size_average, reduce: as for `cross_entropy`.

    Example:
        >>> f = taeda.nn.functional.multilabel_soft_margin_loss
        >>> f(taeda.zeros(1, 2), taeda.ones(1, 2))
        tensor(0.6931)
    """
    if overrides_any(input, target, weight):
        return relay(multilabel_soft_margin_loss, (input, target, weight), locals())
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    loss = target * _log_sigmoid(input) + (1 - target) * _log_sigmoid(-input)
    loss = -loss if weight is None else -loss * weight
    return reduced(loss.sum(dim=-1) / input.size(-1), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y = -1.

    Args:
        input1, input2 (Tensor): (N, D) or (D,).
        target (Tensor): (N,) or 0-d, 1 or -1.
        margin: in [-1, 1].
        reduction, size_average, reduce: as for `cross_entropy`.

    Example:
        >>> f, x = taeda.nn.functional.cosine_embedding_loss, taeda.eye(2)
        >>> f(x, x.flip(0), taeda.ones(2))
        tensor(1.)
    """
    if overrides_any(input1, input2, target):
        return relay(cosine_embedding_loss, (input1, input2, target), locals())
    tensors = (input1, input2, target)
    return _cosine(*tensors, margin, chosen(reduction, size_average, reduce))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """sum over i != y of (w_y max(0, margin - x_y + x_i))^p / C.

    Args:
        input (Tensor): (N, C) or (C,) scores.
        target (Tensor): (N,) or 0-d int64 classes.
        p: 1 or 2.
        margin: distance wanted.
        weight (Tensor): (C,), a factor for each class.
        reduction, size_average, reduce: as for `cross_entropy`.

    Raises:
        ValueError: another p, or a weight that is not 1-D.

    Example:
        >>> f = taeda.nn.functional.multi_margin_loss
        >>> f(taeda.zeros(1, 2), taeda.tensor([0]))
        tensor(0.5000)
    """
    if overrides_any(input, target, weight):
        return relay(multi_margin_loss, (input, target, weight), locals())
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    how = chosen(reduction, size_average, reduce)
    return _multi(input, target, p, margin, weight, how)


def _positive(margin) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(a, p) - d(a, n) + margin), d the p-norm of the difference.

    Balntas et al., "Learning shallow convolutional feature descriptors with triplet
    losses", 2016.

    Args:
        anchor, positive, negative (Tensor): (N, D) or (D,), floating.
        margin: distance wanted, above 0.
        p: exponent of the norm.
        eps: added to each difference.
        swap: take d(p, n) where it is less than d(a, n).
        reduction, size_average, reduce: as for `cross_entropy`.

    Raises:
        ValueError: margin not above 0.

    Example:
        >>> x = taeda.zeros(1, 2)
        >>> taeda.nn.functional.triplet_margin_loss(x, x, x)
        tensor(1.)
    """
    if overrides_any(anchor, positive, negative):
        return relay(triplet_margin_loss, (anchor, positive, negative), locals())
    tensors = (anchor, positive, negative)
    how = chosen(reduction, size_average, reduce)
    _positive(margin)
    return _triplet(*tensors, margin, p, eps, swap, how)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own.

    Args:
        distance_function: of two tensors; default `pairwise_distance`.

    Raises:
        ValueError: margin not above 0, unknown `reduction`.
        RuntimeError: ranks differ.

    Example:
        >>> x = taeda.zeros(1, 2)
        >>> taeda.nn.functional.triplet_margin_with_distance_loss(x, x, x)
        tensor(1.)
    """
    if overrides_any(anchor, positive, negative):
        return relay(
            triplet_margin_with_distance_loss, (anchor, positive, negative), locals()
        )
    tensors = (anchor, positive, negative)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _positive(margin)
    ranks = [t.dim() for t in tensors]
    if len(set(ranks)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same "
            "number of dimensions, but got: anchor {}D, positive {}D, and negative {}D "
            "inputs".format(*ranks)
        )
    distance = _pairwise if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = taeda.minimum(far, distance(positive, negative))
    return reduced(taeda.clamp_min(margin + near - far, 0), reduction)
