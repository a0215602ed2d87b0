"""Losses; each calls its function of nn.functional.

Unless said otherwise `reduction` is "mean" (the default), "sum" or "none";
`size_average` and `reduce` are deprecated forms of it.
"""

from __future__ import annotations

import math

from taeda import Tensor

from .. import functional as F
from .._reduction import legacy_get_string
from .._types import Flag, MaybeDevice, MaybeDtype, MaybeInt, MaybeTensor
from .distance import PairwiseDistance
from .linear import Linear
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    """Holds the reduction and the options of a loss."""

    __constants__ = ["reduction"]
    reduction: str

    def __init__(
        self, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        self._keep(locals())

    def _keep(self, given: dict) -> None:
        """Begin as a module whose attributes are a constructor's `given` locals."""
        super().__init__()
        flags = [given.pop(name, None) for name in ("size_average", "reduce")]
        if flags != [None, None]:
            given["reduction"] = legacy_get_string(*flags)
        for name, value in given.items():
            if name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            elif name not in ("self", "__class__"):
                setattr(self, name, value)


class _WeightedLoss(_Loss):
    """Holds a weight as a buffer as well."""

    def __init__(
        self,
        weight: MaybeTensor = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        self._keep(locals())


class L1Loss(_Loss):
    """|x - y|.

    Example:
        >>> taeda.nn.L1Loss()(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(3.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(x - y)^2.

    Example:
        >>> taeda.nn.MSELoss()(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(9.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """-w_y log(softmax(x))_y.

    Args:
        weight (Tensor): (C,), a factor for each class.
        ignore_index: this target counts for nothing.
        label_smoothing: part of the target spread evenly over all classes (Szegedy
            et al., 2016).
        size_average, reduce, reduction: see above.

    In forward: scores (N, C, ...) or (C,), and int64 classes or probabilities.

    Example:
        >>> taeda.nn.CrossEntropyLoss()(taeda.zeros(1, 2), taeda.tensor([1]))
        tensor(0.6931)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: MaybeTensor = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """-w_y x_y, x the log-probabilities; arguments as `CrossEntropyLoss`.

    Example:
        >>> taeda.nn.NLLLoss()(taeda.tensor([[-1.0, -2.0]]), taeda.tensor([1]))
        tensor(2.)
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: MaybeTensor = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"ignore_index": self.ignore_index, "reduction": self.reduction}
        return F.nll_loss(input, target, self.weight, **options)


class NLLLoss2d(NLLLoss):
    """Deprecated name of `NLLLoss`.

    Example:
        >>> taeda.nn.NLLLoss2d().reduction
        'mean'
    """


class LinearCrossEntropyLoss(_WeightedLoss):
    """`CrossEntropyLoss` of a linear layer's scores, in one.

    Args:
        in_features: width of the input.
        num_classes: classes C.
        out_features: further sizes of the scores, (C, *out_features).
        bias: whether the linear layer has one.
        device, dtype: of the linear layer.
        reduction, weight, ignore_index, label_smoothing: as for `CrossEntropyLoss`.
        options (LinearCrossEntropyOptions): compute chunk by chunk.

    Raises:
        RuntimeError: a weight of another shape, smoothing outside [0, 1].

    Example:
        >>> layer = taeda.nn.LinearCrossEntropyLoss(3, 4)
        >>> layer(taeda.ones(2, 3), taeda.tensor([0, 1])).dim()
        0
    """

    __constants__ = [
        "num_classes",
        "out_features",
        "reduction",
        "ignore_index",
        "label_smoothing",
    ]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
        reduction: str = "mean",
        weight: MaybeTensor = None,
        ignore_index: MaybeInt = None,
        label_smoothing: float = 0.0,
        options=None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got "
                f"{tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        scores = num_classes * math.prod(out_features)
        self.linear = Linear(in_features, scores, bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        layer, shape = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            layer.weight.reshape(*shape, layer.in_features),
            target,
            linear_bias=None if layer.bias is None else layer.bias.reshape(shape),
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            **{"weight": self.weight, "options": self.options},
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        shown = {
            "in_features": self.linear.in_features,
            "num_classes": self.num_classes,
            "out_features": self.out_features,
            "bias": self.linear.bias is not None,
            "reduction": self.reduction,
            "ignore_index": self.ignore_index,
            "label_smoothing": self.label_smoothing,
            "options": self.options,
        }
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class PoissonNLLLoss(_Loss):
    """exp(x) - y x, or x - y log(x + eps) when not `log_input`.

    Args:
        log_input: whether the input is a logarithm.
        full: add Stirling's term y log y - y + log(2 pi y) / 2 where y > 1.
        eps: keeps the logarithm finite.
        size_average, reduce, reduction: see above.

    Example:
        >>> taeda.nn.PoissonNLLLoss()(taeda.zeros(1), taeda.ones(1))
        tensor(1.)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Flag = None,
        eps: float = 1e-8,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        self._keep(locals())

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        options = {"eps": self.eps, "reduction": self.reduction}
        flags = (self.log_input, self.full)
        return F.poisson_nll_loss(log_input, target, *flags, **options)


class GaussianNLLLoss(_Loss):
    """(log v + (x - y)^2 / v) / 2 with v = max(var, eps) (Nix and Weigend, 1994).

    Args:
        full: add log(2 pi) / 2.
        eps: smallest variance.
        reduction: see above.

    In forward: means, values, and variances (a tensor or a number).

    Example:
        >>> x, y = taeda.zeros(1), taeda.ones(1)
        >>> taeda.nn.GaussianNLLLoss()(x, y, y)
        tensor(0.5000)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor, var) -> Tensor:
        options = (self.full, self.eps, self.reduction)
        return F.gaussian_nll_loss(input, target, var, *options)


class KLDivLoss(_Loss):
    """y (log y - x), x log-probabilities (Kullback and Leibler, 1951).

    Args:
        size_average, reduce: see above.
        reduction: also "batchmean", which is the divergence.
        log_target: targets are logarithms as well.

    Example:
        >>> x = taeda.tensor([[0.5, 0.5]])
        >>> taeda.nn.KLDivLoss(reduction="batchmean")(x.log(), x)
        tensor(0.)
    """

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"reduction": self.reduction, "log_target": self.log_target}
        return F.kl_div(input, target, **options)


class BCELoss(_WeightedLoss):
    """-w (y log x + (1 - y) log(1 - x)), logarithms no less than -100.

    Args:
        weight (Tensor): factors, broadcast to the input.
        size_average, reduce, reduction: see above.

    Example:
        >>> taeda.nn.BCELoss()(taeda.tensor([0.5]), taeda.ones(1))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"weight": self.weight, "reduction": self.reduction}
        return F.binary_cross_entropy(input, target, **options)


class BCEWithLogitsLoss(_WeightedLoss):
    """`BCELoss` of sigmoid(x), without overflow.

    Args:
        weight (Tensor): factors, broadcast to the input.
        size_average, reduce, reduction: see above.
        pos_weight (Tensor): factor of y's term.

    Example:
        >>> taeda.nn.BCEWithLogitsLoss()(taeda.zeros(1), taeda.ones(1))
        tensor(0.6931)
    """

    def __init__(
        self,
        weight: MaybeTensor = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        pos_weight: MaybeTensor = None,
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"pos_weight": self.pos_weight, "reduction": self.reduction}
        loss = F.binary_cross_entropy_with_logits
        return loss(input, target, self.weight, **options)


class HuberLoss(_Loss):
    """d^2 / 2 where d = |x - y| <= delta, elsewhere delta (d - delta / 2).

    Huber, 1964.

    Args:
        reduction: see above.
        delta: where the loss becomes linear, above 0.

    Raises:
        TypeError: delta is no number.

    Example:
        >>> taeda.nn.HuberLoss()(taeda.zeros(1), taeda.full((1,), 3.0))
        tensor(2.5000)
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(_Loss):
    """d^2 / (2 beta) where d = |x - y| < beta, elsewhere d - beta / 2.

    Girshick, "Fast R-CNN", 2015.

    Args:
        size_average, reduce, reduction: see above.
        beta: where the loss becomes linear; 0 is the l1 loss.

    Example:
        >>> taeda.nn.SmoothL1Loss()(taeda.zeros(1), taeda.ones(1))
        tensor(0.5000)
    """

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"reduction": self.reduction, "beta": self.beta}
        return F.smooth_l1_loss(input, target, **options)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-y x)), y 1 or -1.

    Example:
        >>> taeda.nn.SoftMarginLoss()(taeda.zeros(1), taeda.ones(1))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """sum over labels j and other classes i of max(0, 1 - x_j + x_i) / C.

    In forward: scores, and int64 labels of that shape; those up to the first -1 count.

    Example:
        >>> taeda.nn.MultiLabelMarginLoss()(taeda.zeros(2), taeda.tensor([0, -1]))
        tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of scores, averaged over the classes.

    Args:
        weight (Tensor): (C,), a factor for each class.
        size_average, reduce, reduction: see above.

    Example:
        >>> loss = taeda.nn.MultiLabelSoftMarginLoss()
        >>> loss(taeda.zeros(1, 2), taeda.ones(1, 2))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = {"weight": self.weight, "reduction": self.reduction}
        return F.multilabel_soft_margin_loss(input, target, **options)


class _MarginLoss(_Loss):
    """Holds a margin as well."""

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        self._keep(locals())

    def _options(self):
        return {"margin": self.margin, "reduction": self.reduction}


class HingeEmbeddingLoss(_MarginLoss):
    """x where y = 1, max(0, margin - x) where y = -1; x is a distance.

    Args:
        margin: distance wanted of what does not belong together.
        size_average, reduce, reduction: see above.

    Example:
        >>> taeda.nn.HingeEmbeddingLoss()(taeda.full((1,), 3.0), taeda.ones(1))
        tensor(3.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, **self._options())


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y = -1.

    Args:
        margin: in [-1, 1].
        size_average, reduce, reduction: see above.

    Example:
        >>> x = taeda.eye(2)
        >>> taeda.nn.CosineEmbeddingLoss()(x, x.flip(0), taeda.ones(2))
        tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, **self._options())


class MarginRankingLoss(_MarginLoss):
    """max(0, -y (x1 - x2) + margin), y = 1 where x1 is to rank higher, else -1.

    Args:
        margin: distance wanted.
        size_average, reduce, reduction: see above.

    Example:
        >>> one = taeda.ones(1)
        >>> taeda.nn.MarginRankingLoss()(taeda.zeros(1), one, one)
        tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, **self._options())


class MultiMarginLoss(_WeightedLoss):
    """sum over i != y of (w_y max(0, margin - x_y + x_i))^p / C.

    Args:
        p: 1 or 2.
        margin: distance wanted.
        weight (Tensor): (C,), a factor for each class.
        size_average, reduce, reduction: see above.

    Raises:
        ValueError: another p, or a weight that is not 1-D.

    Example:
        >>> taeda.nn.MultiMarginLoss()(taeda.zeros(1, 2), taeda.tensor([0]))
        tensor(0.5000)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: MaybeTensor = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{weight.dim()}D instead"
            )
        self._keep(locals())

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        options = (self.p, self.margin, self.weight)
        return F.multi_margin_loss(input, target, *options, reduction=self.reduction)


def _positive_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(
            f"{name}: expected margin to be greater than 0, got {margin} instead"
        )


class TripletMarginLoss(_Loss):
    """max(0, d(a, p) - d(a, n) + margin), d the p-norm of the difference.

    Balntas et al., "Learning shallow convolutional feature descriptors with triplet
    losses", 2016.

    Args:
        margin: distance wanted, above 0.
        p: exponent of the norm.
        eps: added to each difference.
        swap: take d(p, n) where it is less than d(a, n).
        size_average, reduce, reduction: see above.

    Raises:
        ValueError: margin not above 0.

    Example:
        >>> x = taeda.zeros(1, 2)
        >>> taeda.nn.TripletMarginLoss()(x, x, x)
        tensor(1.)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        _positive_margin("TripletMarginLoss", margin)
        self._keep(locals())

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = (self.margin, self.p, self.eps, self.swap)
        tensors = (anchor, positive, negative)
        return F.triplet_margin_loss(*tensors, *options, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of one's own.

    Args:
        distance_function: of two tensors; default `PairwiseDistance`.
        margin, swap, reduction: as for `TripletMarginLoss`.

    Raises:
        ValueError: margin not above 0.

    Example:
        >>> x = taeda.zeros(1, 2)
        >>> taeda.nn.TripletMarginWithDistanceLoss(margin=0.5)(x, x, x)
        tensor(0.5000)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function=None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        _positive_margin("TripletMarginWithDistanceLoss", margin)
        if distance_function is None:
            distance_function = PairwiseDistance()
        self._keep(locals())

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = {"margin": self.margin, "swap": self.swap}
        options.update(reduction=self.reduction)
        options.update(distance_function=self.distance_function)
        tensors = (anchor, positive, negative)
        return F.triplet_margin_with_distance_loss(*tensors, **options)


class CTCLoss(_Loss):
    """-log of the probability of all alignments that spell the target.

    Graves et al., "Connectionist Temporal Classification", 2006.

    Args:
        blank: class of the blank.
        reduction: see above; "mean" divides each loss by its target's length first.
        zero_infinity: infinite losses, from inputs too short, become zero.

    In forward: see `nn.functional.ctc_loss`.

    Example:
        >>> x = taeda.zeros(1, 1, 2).log_softmax(2)
        >>> taeda.nn.CTCLoss()(x, taeda.tensor([[1]]), (1,), (1,))
        tensor(0.6931)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        self._keep(locals())

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths, target_lengths
    ) -> Tensor:
        options = (self.blank, self.reduction, self.zero_infinity)
        lengths = (input_lengths, target_lengths)
        return F.ctc_loss(log_probs, targets, *lengths, *options)
