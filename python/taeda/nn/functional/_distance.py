"""Distances, similarities and normalisation to unit length."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native, overrides_any, relay
from .._types import MaybeTensor

__name__ = __package__

pairwise_distance = native("pairwise_distance")
pdist = native("pdist")
cosine_similarity = native("cosine_similarity")


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: MaybeTensor = None,
) -> Tensor:
    """x / max(||x||_p, eps) along `dim`.

    Args:
        input (Tensor): floating or complex.
        p: exponent of the norm.
        dim: dimension or tuple of dimensions of one vector.
        eps: smallest divisor.
        out (Tensor): where to write; then there is no gradient.

    Example:
        >>> taeda.nn.functional.normalize(taeda.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    if overrides_any(input, out):
        return relay(normalize, (input, out), locals())
    length = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / length.clamp_min(eps).expand_as(input)
    return taeda.div(input, length.clamp_min_(eps).expand_as(input), out=out)
