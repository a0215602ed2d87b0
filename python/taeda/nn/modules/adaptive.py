"""Softmax over very many classes."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .._types import MaybeDevice, MaybeDtype
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(tuple):
    """(output, loss): each target's log-probability, and minus their mean."""

    __slots__ = ()
    _fields = ("output", "loss")

    def __new__(cls, output, loss):
        return tuple.__new__(cls, (output, loss))

    def __getnewargs__(self):
        return tuple(self)

    @property
    def output(self) -> Tensor:
        return self[0]

    @property
    def loss(self) -> Tensor:
        return self[1]

    def __repr__(self) -> str:
        return f"_ASMoutput(output={self[0]!r}, loss={self[1]!r})"


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax in which rare classes share narrow clusters.

    The head scores the frequent classes and one entry for each cluster; a cluster's
    classes are scored by two narrow linear maps. Grave et al., "Efficient softmax
    approximation for GPUs", 2016.

    Args:
        in_features: width of the input.
        n_classes: number of classes, the frequent ones first.
        cutoffs: first class of each cluster.
        div_value: each cluster is narrower than the one before by this factor.
        head_bias: whether the head has a bias.
        device, dtype: of the parameters.

    Raises:
        ValueError: cutoffs that are not increasing, within 1 and n_classes - 1.
        RuntimeError: in forward, shapes that do not fit, or a target out of range.

    Example:
        >>> layer = taeda.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])
        >>> tuple(layer(taeda.ones(3, 4), taeda.tensor([0, 2, 5])).output.shape)
        (3,)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(a < b for a, b in zip(cutoffs, cutoffs[1:], strict=False))
        whole = all(int(c) == c for c in cutoffs)
        if not rising or not whole or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in "
                "an increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.div_value, self.head_bias = div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        kind = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(
            zip(self.cutoffs, self.cutoffs[1:], strict=False)
        ):
            narrow = int(in_features // div_value ** (i + 1))
            inner = Linear(in_features, narrow, bias=False, **kind)
            outer = Linear(narrow, end - first, bias=False, **kind)
            self.tail.append(Sequential(inner, outer))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for layer in self.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def _check(self, input, target) -> None:
        rank = target.dim()
        if rank not in (0, 1):
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported"
            )
        if input.dim() != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found "
                f"inputs with size {input.size()}"
            )
        if rank == 1 and input.size(0) != target.size(0):
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension."
            )

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        single = target_.dim() == 0
        input, target = (x.unsqueeze(0) if single else x for x in (input_, target_))
        entry = target.clone()  # the head's entry of each target
        output = input.new_zeros(target.size(0))
        seen = int(((target >= 0) & (target < self.shortlist_size)).sum())
        for i, (first, end) in enumerate(
            zip(self.cutoffs, self.cutoffs[1:], strict=False)
        ):
            rows = ((target >= first) & (target < end)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            seen += rows.numel()
            entry.index_fill_(0, rows, self.shortlist_size + i)
            scores = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            inner = (target.index_select(0, rows) - first).unsqueeze(1)
            output = output.index_copy(0, rows, scores.gather(1, inner).squeeze(1))
        if seen != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(tail(input), dim=1) + head[:, at : at + 1])
        return taeda.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities of all classes, (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row; scores clusters only where needed."""
        scores = self.head(input)
        best = scores.argmax(dim=1)
        rare = best >= self.shortlist_size
        if not rare.any():
            return best
        best[rare] = self._get_full_log_prob(input[rare], scores[rare]).argmax(dim=1)
        return best
