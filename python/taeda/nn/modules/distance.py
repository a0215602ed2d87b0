"""Distances between vectors."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """||x1 - x2 + eps||_p along the last dimension.

    Args:
        p: exponent of the norm.
        eps: added to each difference.
        keepdim: keep the last dimension, with size 1.

    Example:
        >>> x = taeda.zeros(1, 2)
        >>> taeda.nn.PairwiseDistance(eps=0)(x, taeda.tensor([[3.0, 4.0]]))
        tensor([5.])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(
        self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """x1 . x2 / max(||x1|| ||x2||, eps) along `dim`.

    Args:
        dim: dimension of one vector.
        eps: smallest divisor.

    Example:
        >>> x = taeda.eye(2)
        >>> taeda.nn.CosineSimilarity()(x, x)
        tensor([1., 1.])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
