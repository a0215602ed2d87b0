"""Attention over sequences of several lengths that lie behind one another."""

from __future__ import annotations

from collections import namedtuple

import taeda
from taeda import Tensor

from .. import functional as F

__all__ = ["AuxRequest", "varlen_attn"]


AuxRequest = namedtuple("AuxRequest", ["lse"], defaults=[False])
AuxRequest.__doc__ = """What `varlen_attn` shall return beside its result.

lse: the logarithm of each row's sum of exponentials, (heads, total length).
"""


def _mask(rows: int, columns: int, window: tuple[int, int], device) -> Tensor | None:
    """Which keys a query sees; the last query sees the last key. None for all."""
    left, right = window
    if left < 0 and right < 0:
        return None
    query = taeda.arange(rows, device=device).unsqueeze(1) + (columns - rows)
    key = taeda.arange(columns, device=device)
    seen = taeda.ones(rows, columns, dtype=taeda.bool, device=device)
    if left >= 0:
        seen &= key >= query - left
    if right >= 0:
        seen &= key <= query + right
    return seen


def _row_sums(q: Tensor, k: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    k = k.repeat_interleave(q.size(0) // k.size(0), 0)
    scores = q.float() @ k.float().mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -taeda.inf)
    return scores.logsumexp(-1)


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
):
    """Scaled dot product attention of each sequence with its own or other keys.

    Args:
        query (Tensor): (total length, heads, width), the sequences behind one another.
        key, value (Tensor): (total length of keys, heads, width).
        cu_seq_q, cu_seq_k (Tensor): (sequences + 1), where each begins; keys are at the
            places of queries with None.
        max_q, max_k: the longest; not read, the places tell.
        return_aux: what else to return.
        scale: of the scores; 1 / sqrt(width) by default.
        window_size: how many keys before and behind its own a query sees; -1 is all,
            (-1, 0) is causal. Ends are aligned where lengths differ.
        enable_gqa: `key` has fewer heads, each for several of `query`.
        seqused_k (Tensor): (sequences), how many keys of each count.
        block_table, num_splits: refused.

    Returns:
        A tensor like `query`; with `return_aux.lse` also those numbers.

    Raises:
        NotImplementedError: a block table or a number of splits.

    Example:
        >>> from taeda.nn.attention.varlen import varlen_attn
        >>> q, ends = taeda.ones(3, 1, 2), taeda.tensor([0, 1, 3])
        >>> varlen_attn(q, q, q, ends, ends, 2, 2).shape
        taeda.Size([3, 1, 2])
    """
    for name, given in (("block_table", block_table), ("num_splits", num_splits)):
        if given is not None:
            raise NotImplementedError(f"varlen_attn: {name}")
    scale = query.size(-1) ** -0.5 if scale is None else scale
    starts = cu_seq_q.tolist()
    key_starts = starts if cu_seq_k is None else cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    outputs, sums = [], []
    for i, (begin, end) in enumerate(zip(starts, starts[1:], strict=False)):
        first, last = key_starts[i], key_starts[i + 1]
        last = last if used is None else first + used[i]
        q = query[begin:end].transpose(0, 1)
        k, v = (t[first:last].transpose(0, 1) for t in (key, value))
        mask = _mask(end - begin, last - first, window_size, query.device)
        one = F.scaled_dot_product_attention(
            q[None], k[None], v[None], mask, scale=scale, enable_gqa=enable_gqa
        )
        outputs.append(one[0].transpose(0, 1))
        if return_aux is not None and return_aux.lse:
            sums.append(_row_sums(q, k, mask, scale))
    result = taeda.cat(outputs) if outputs else query.new_empty(query.shape)
    return (result, taeda.cat(sums, 1)) if sums else result
