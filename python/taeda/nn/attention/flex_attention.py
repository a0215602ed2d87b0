"""Attention whose scores and mask are functions of the indices.

The functions are called with index tensors that broadcast over (B, H, Q, KV), and the
scores are computed as a whole; a fused kernel is the graph compiler's work.
"""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from ._block_mask import (
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    indices,
    noop_mask,
    or_masks,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(dict):
    """Options of fused kernels, by name; there is none to read them yet."""


class AuxRequest(tuple):
    """What `flex_attention` is to return besides the output.

    Args:
        lse: the logarithm of the sum of exponentials of each query's scores.
        max_scores: the largest score of each query.
    """

    __slots__ = ()
    _fields = ("lse", "max_scores")

    def __new__(cls, lse: bool = False, max_scores: bool = False):
        return tuple.__new__(cls, (lse, max_scores))

    lse = property(lambda self: self[0], doc="Whether to return it.")
    max_scores = property(lambda self: self[1], doc="Whether to return them.")

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(lse={self[0]!r}, max_scores={self[1]!r})"


class AuxOutput(AuxRequest):
    """What an `AuxRequest` asked for; None where it did not."""

    __slots__ = ()

    def __new__(cls, lse: Tensor | None = None, max_scores: Tensor | None = None):
        return tuple.__new__(cls, (lse, max_scores))


def _check(query, key, value, enable_gqa, block_mask) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, others = query.size(1), key.size(1)
    if not enable_gqa and heads != others:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={others}. Try setting enable_gqa=True for GQA."
        )
    if heads % others != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={others}."
        )
    if query.size(0) != key.size(0) and block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none "
            f"block_mask, but got Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    if block_mask is not None:
        lengths = (query.size(2), key.size(2))
        if tuple(block_mask.seq_lengths) != lengths:
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but "
                f"got q_len={lengths[0]} and kv_len={lengths[1]}"
            )


def _shown(block_mask, places, sizes):
    """Which elements a block mask shows, (B, H, Q, KV) or smaller."""
    inside = block_mask.mask_mod(*places)
    tall, wide = block_mask.BLOCK_SIZE

    def elements(kind):
        from ._block_mask import _as_grid

        counts = getattr(block_mask, f"{kind}_num_blocks")
        if counts is None:
            return None
        grid = _as_grid(counts, getattr(block_mask, f"{kind}_indices")).bool()
        rows = grid.repeat_interleave(tall, -2).repeat_interleave(wide, -1)
        return rows[..., : sizes[2], : sizes[3]]

    partial, full = elements("kv"), elements("full_kv")
    shown = partial & inside
    return shown if full is None else shown | full


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod=None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options=None,
    *,
    return_aux: AuxRequest | None = None,
):
    """softmax(score_mod(Q K^T * scale)) V, hidden where `block_mask` hides.

    Dong et al., "Flex Attention", 2024.

    Args:
        query, key, value (Tensor): (B, Hq, L, E), (B, Hkv, S, E), (B, Hkv, S, Ev).
        score_mod: `score_mod(score, b, h, q, kv)` -> score.
        block_mask: from `create_block_mask`.
        scale: default 1 / sqrt(E).
        enable_gqa: Hq may be a multiple of Hkv.
        return_lse: deprecated form of `return_aux`.
        kernel_options: for fused kernels; not used.
        return_aux: what else to return.

    Returns:
        (B, Hq, L, Ev), zero for queries that see no key; with `return_aux` the pair
        of it and an AuxOutput.

    Raises:
        NotImplementedError: tensors that are not 4-D.
        ValueError: heads, batches or lengths that do not fit.

    Example:
        >>> from taeda.nn.attention.flex_attention import flex_attention
        >>> x = taeda.ones(1, 1, 2, 4)
        >>> tuple(flex_attention(x, x, x).shape)
        (1, 1, 2, 4)
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux")
    groups = query.size(1) // key.size(1)
    if groups > 1:
        key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    double = query.dtype is taeda.float64
    scores = query @ key.transpose(-2, -1)
    scores = scores.to(taeda.float64 if double else taeda.float32) * scale
    sizes = tuple(scores.shape)
    places = indices(sizes, query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if block_mask is not None:
        shown = _shown(block_mask, places, sizes)
        scores = scores.masked_fill(~shown, -math.inf)
    lse, largest = scores.logsumexp(-1), scores.amax(-1)
    # Rows without any key: harmless scores for softmax, then zero.
    blind = taeda.isneginf(largest).unsqueeze(-1)
    weights = scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
    output = weights.to(query.dtype) @ value
    if return_aux is not None:
        found = (lse if return_aux.lse else None, largest)
        return output, AuxOutput(found[0], found[1] if return_aux.max_scores else None)
    return (output, lse) if return_lse else output
