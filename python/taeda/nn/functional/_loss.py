"""Losses of classification and regression."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor
from taeda._checks import makes_checks, refuse_any

from .._native import native, overrides_any, relay, warn
from .._reduction import chosen, get_enum, legacy_get_string, reduced
from .._types import Flag, MaybeInt, MaybeTensor

__name__ = __package__

_ctc, _nll, _cross_entropy = map(
    native, ("ctc_loss", "nll_loss_nd", "cross_entropy_loss")
)
_poisson, _kl_div = native("poisson_nll_loss"), native("kl_div")
_bce, _bce_logits = map(
    native, ("binary_cross_entropy", "binary_cross_entropy_with_logits")
)
_l1, _mse, _huber = map(native, ("l1_loss", "mse_loss", "huber_loss"))
_smooth_l1 = native("smooth_l1_loss")
_PLAIN = ("none", "mean", "sum")


def _same_size(name: str, input, target):
    """Both broadcast to one shape; a silent broadcast is worth a warning."""
    if target.size() != input.size():
        warn(
            f"{name}: Using a target size ({target.size()}) that is different to the "
            f"input size ({input.size()}): both are broadcast, which is rarely meant. "
            "Please ensure they have the same size.",
            level=4,
        )
    return taeda.broadcast_tensors(input, target)


def _weighted(errors, weight, input, reduction, divisor):
    """Errors times weights; the mean is over `divisor`, or over the elements."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    if reduction not in _PLAIN:
        raise ValueError(
            f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', "
            "'sum'."
        )
    errors = errors * weight
    if reduction == "mean" and divisor is not None:
        return errors.sum() / divisor.sum()
    return reduced(errors, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-w_y log(softmax(x))_y, averaged over the targets.

    Args:
        input (Tensor): scores, (C,), (N, C) or (N, C, d1, ...), floating.
        target (Tensor): int64 classes without the C dimension, or probabilities of
            the shape of `input`.
        weight (Tensor): (C,), a factor for each class.
        ignore_index: this target counts for nothing.
        reduction: "none", "mean" (weighted) or "sum".
        label_smoothing: part of the target spread evenly over all classes (Szegedy
            et al., 2016).
        size_average, reduce: deprecated forms of `reduction`.

    Raises:
        ValueError: unknown `reduction`.
        IndexError: a target outside [0, C).

    Example:
        >>> taeda.nn.functional.cross_entropy(taeda.zeros(1, 2), taeda.tensor([1]))
        tensor(0.6931)
    """
    if overrides_any(input, target, weight):
        return relay(cross_entropy, (input, target, weight), locals())
    how = chosen(reduction, size_average, reduce)
    return _cross_entropy(input, target, weight, how, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-w_y x_y, x the log-probabilities; arguments as `cross_entropy`.

    Example:
        >>> x = taeda.tensor([[-1.0, -2.0]])
        >>> taeda.nn.functional.nll_loss(x, taeda.tensor([1]))
        tensor(2.)
    """
    if overrides_any(input, target, weight):
        return relay(nll_loss, (input, target, weight), locals())
    how = chosen(reduction, size_average, reduce)
    return _nll(input, target, weight, how, ignore_index)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of all alignments that spell the target.

    Graves et al., "Connectionist Temporal Classification", 2006.

    Args:
        log_probs (Tensor): (T, N, C) or (T, C) log-probabilities.
        targets (Tensor): (N, S) classes, or all targets in one line.
        input_lengths, target_lengths: tensor or tuple of N lengths.
        blank: class of the blank.
        reduction: "none", "mean" (each divided by its target's length) or "sum".
        zero_infinity: infinite losses, from inputs too short, become zero.

    Example:
        >>> x = taeda.zeros(1, 1, 2).log_softmax(2)
        >>> taeda.nn.functional.ctc_loss(x, taeda.tensor([[1]]), (1,), (1,))
        tensor(0.6931)
    """
    if overrides_any(log_probs, targets, input_lengths, target_lengths):
        return relay(
            ctc_loss, (log_probs, targets, input_lengths, target_lengths), locals()
        )
    how = get_enum(reduction)
    lengths = (input_lengths, target_lengths)
    return _ctc(log_probs, targets, *lengths, blank, how, zero_infinity)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Flag = None,
    eps: float = 1e-8,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - y x, or x - y log(x + eps) when not `log_input`.

    Args:
        input (Tensor): the (logarithm of the) expected count.
        target (Tensor): counts.
        log_input: whether `input` is a logarithm.
        full: add Stirling's term y log y - y + log(2 pi y) / 2 where y > 1.
        eps: keeps the logarithm finite.
        reduction, size_average, reduce: as for `cross_entropy`.

    Example:
        >>> taeda.nn.functional.poisson_nll_loss(taeda.zeros(1), taeda.ones(1))
        tensor(1.)
    """
    if overrides_any(input, target):
        return relay(poisson_nll_loss, (input, target), locals())
    how = chosen(reduction, size_average, reduce)
    return _poisson(input, target, log_input, full, eps, how)


@makes_checks
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log v + (x - y)^2 / v) / 2 with v = max(var, eps), which has no gradient there.

    Nix and Weigend, 1994.

    Args:
        input, target (Tensor): means and values, floating.
        var: variances, of the shape of `input`, or with the last size missing or 1.
        full: add log(2 pi) / 2.
        eps: smallest variance.
        reduction: "none", "mean" or "sum".

    Raises:
        ValueError: a negative variance, a wrong shape, unknown `reduction`.

    Example:
        >>> x = taeda.zeros(1)
        >>> taeda.nn.functional.gaussian_nll_loss(x, taeda.ones(1), taeda.ones(1))
        tensor(0.5000)
    """
    if overrides_any(input, target, var):
        return relay(gaussian_nll_loss, (input, target, var), locals())
    if reduction not in _PLAIN:
        raise ValueError(f"{reduction} is not valid")
    variance = _variance(var, input).clone()
    with taeda.no_grad():
        variance.clamp_(min=eps)
    error = input - target
    loss = (variance.log() + error * error / variance) * 0.5
    if full:
        loss = loss + math.log(2 * math.pi) / 2
    return reduced(loss, reduction)


def _variance(var, input):
    """`var` as a tensor that broadcasts to `input`."""
    number = isinstance(var, float)
    negative = ValueError("var has negative entry/entries")
    if not number:
        refuse_any(var < 0, negative)
    elif var < 0:
        raise negative
    if number:
        return taeda.full_like(input, var)
    return var if var.size() == input.size() else _fit_variance(var, input)


def _fit_variance(var, input):
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    odd = [v for n, v in zip(input.size(), var.size(), strict=False) if n != v]
    if input.dim() != var.dim() or odd != [1]:
        raise ValueError("var is of incorrect size")
    return var


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """y (log y - x), x log-probabilities (Kullback and Leibler, 1951).

    Args:
        input (Tensor): log-probabilities.
        target (Tensor): probabilities, or their logarithms with `log_target`.
        reduction: "none", "batchmean" (the divergence), "mean" (over all elements)
            or "sum".
        log_target: see `target`.
        size_average, reduce: deprecated forms of `reduction`.

    Example:
        >>> x = taeda.tensor([[0.5, 0.5]])
        >>> taeda.nn.functional.kl_div(x.log(), x, reduction="batchmean")
        tensor(0.)
    """
    if overrides_any(input, target):
        return relay(kl_div, (input, target), locals())
    if size_average is not None or reduce is not None:
        how = get_enum(legacy_get_string(size_average, reduce))
    else:
        if reduction == "mean":
            warn(
                "kl_div: reduction='mean' divides by the number of elements; "
                "reduction='batchmean' gives the divergence of each sample and is what "
                "'mean' will become"
            )
        how = get_enum("sum" if reduction == "batchmean" else reduction)
    loss = _kl_div(input, target, how, log_target=log_target)
    by_sample = reduction == "batchmean" and input.dim() > 0
    return loss / input.size(0) if by_sample else loss


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """-w (y log x + (1 - y) log(1 - x)), logarithms no less than -100.

    Args:
        input (Tensor): probabilities in [0, 1].
        target (Tensor): of the same shape, in [0, 1].
        weight (Tensor): factors, broadcast to it.
        reduction, size_average, reduce: as for `cross_entropy`.

    Raises:
        ValueError: shapes differ.

    Example:
        >>> x = taeda.tensor([0.5])
        >>> taeda.nn.functional.binary_cross_entropy(x, taeda.ones(1))
        tensor(0.6931)
    """
    if overrides_any(input, target, weight):
        return relay(binary_cross_entropy, (input, target, weight), locals())
    how = chosen(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input "
            f"size ({input.size()}) is deprecated: binary_cross_entropy takes a "
            "target for each input"
        )
    if weight is not None:
        weight = weight.expand(taeda.broadcast_shapes(target.size(), weight.size()))
    return _bce(input, target, weight, how)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: MaybeTensor = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    pos_weight: MaybeTensor = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), without overflow.

    Args:
        input (Tensor): scores.
        target, weight, reduction, size_average, reduce: as there.
        pos_weight (Tensor): factor of y's term, broadcast to `input`.

    Raises:
        ValueError: shapes differ.

    Example:
        >>> f = taeda.nn.functional.binary_cross_entropy_with_logits
        >>> f(taeda.zeros(1), taeda.ones(1))
        tensor(0.6931)
    """
    if overrides_any(input, target, weight, pos_weight):
        return relay(
            binary_cross_entropy_with_logits,
            (input, target, weight, pos_weight),
            locals(),
        )
    how = chosen(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size "
            f"({input.size()})"
        )
    return _bce_logits(input, target, weight, pos_weight, how)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where d = |x - y| < beta, elsewhere d - beta / 2.

    Girshick, "Fast R-CNN", 2015. `beta` of 0 is the l1 loss; other arguments as for
    `mse_loss`.

    Example:
        >>> taeda.nn.functional.smooth_l1_loss(taeda.zeros(1), taeda.ones(1))
        tensor(0.5000)
    """
    if overrides_any(input, target):
        return relay(smooth_l1_loss, (input, target), locals())
    input, target = _same_size("smooth_l1_loss", input, target)
    how = chosen(reduction, size_average, reduce)
    if beta == 0.0:
        return _l1(input, target, how)
    return _smooth_l1(input, target, how, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: MaybeTensor = None,
) -> Tensor:
    """d^2 / 2 where d = |x - y| <= delta, elsewhere delta (d - delta / 2).

    Huber, 1964.

    Args:
        input, target (Tensor): of one shape, floating.
        reduction: "none", "mean" or "sum".
        delta: where the loss becomes linear, above 0.
        weight (Tensor): factors, of the shape of `input`.

    Example:
        >>> taeda.nn.functional.huber_loss(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(2.5000)
    """
    if overrides_any(input, target, weight):
        return relay(huber_loss, (input, target, weight), locals())
    first, second = _same_size("huber_loss", input, target)
    if weight is None:
        return _huber(first, second, get_enum(reduction), delta)
    return _weighted(_huber(first, second, 0, delta), weight, input, reduction, None)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: MaybeTensor = None,
) -> Tensor:
    """|x - y|; arguments as `mse_loss`.

    Example:
        >>> taeda.nn.functional.l1_loss(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(3.)
    """
    if overrides_any(input, target, weight):
        return relay(l1_loss, (input, target, weight), locals())
    first, second = _same_size("l1_loss", input, target)
    if weight is None:
        return _l1(first, second, chosen(reduction, size_average, reduce))
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _weighted((first - second).abs(), weight, input, reduction, weight)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
    weight: MaybeTensor = None,
) -> Tensor:
    """(x - y)^2.

    Args:
        input, target (Tensor): of one shape, floating; other shapes broadcast and
            warn.
        reduction: "none", "mean" or "sum".
        weight (Tensor): factors, of the shape of `input`; the mean is then over
            their sum.
        size_average, reduce: deprecated forms of `reduction`.

    Raises:
        ValueError: unknown `reduction`, or a weight of another shape.

    Example:
        >>> taeda.nn.functional.mse_loss(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(9.)
    """
    if overrides_any(input, target, weight):
        return relay(mse_loss, (input, target, weight), locals())
    first, second = _same_size("mse_loss", input, target)
    if weight is None:
        return _mse(first, second, chosen(reduction, size_average, reduce))
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _weighted((first - second).pow(2), weight, input, reduction, weight)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: MaybeTensor = None,
    weight: MaybeTensor = None,
    reduction: str = "mean",
    ignore_index: MaybeInt = None,
    label_smoothing: float = 0.0,
    options=None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    Args:
        input (Tensor): (N, F) or (F,), floating.
        linear_weight (Tensor): (C, F) or (C, d1, ..., F).
        target (Tensor): classes or probabilities, as for `cross_entropy`.
        linear_bias (Tensor): (C, d1, ...).
        weight, reduction, label_smoothing: as for `cross_entropy`.
        ignore_index: None is -100; not with probabilities.
        options (LinearCrossEntropyOptions): compute chunk by chunk, so that the
            scores never exist as a whole.

    Raises:
        RuntimeError: shapes that do not fit.

    Example:
        >>> f = taeda.nn.functional.linear_cross_entropy
        >>> f(taeda.ones(1, 2), taeda.zeros(2, 2), taeda.tensor([1]))
        tensor(0.6931)
    """
    if overrides_any(input, linear_weight, target, linear_bias, weight):
        given = locals()
        tensors = (input, linear_weight, target, linear_bias, weight)
        return relay(linear_cross_entropy, tensors, given)
    from ..modules.linear_cross_entropy import compute

    how = (reduction, ignore_index, label_smoothing)
    tensors = (input, linear_weight, target, linear_bias, weight)
    return compute(*tensors, *how, options)
