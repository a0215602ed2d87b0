"""Attention over sequences of several lengths that lie behind one another."""

from __future__ import annotations

from collections import namedtuple

import taeda
from taeda import Tensor

from .. import functional as F
from ._sequences import attend, takes

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


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


def _check_heads(query: Tensor, key: Tensor, enable_gqa: bool) -> None:
    own, of_keys = query.size(1), key.size(-2)
    if not enable_gqa and own != of_keys:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={own} and Hkv={of_keys}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and own % of_keys != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={own} and Hkv={of_keys}."
        )


def _places(t: Tensor | None) -> Tensor | None:
    """As the kernel reads them."""
    return None if t is None else t.to(taeda.int32).contiguous()


def _one_by_one(
    query, key, value, starts, key_starts, window, scale, enable_gqa, used, pages, aux
) -> tuple[Tensor, Tensor | None]:
    """Sequence by sequence, where no kernel takes all."""
    starts = starts.tolist()
    key_starts = starts if key_starts is None else key_starts.tolist()
    used = None if used is None else used.tolist()
    outputs, sums = [], []
    for i, (begin, end) in enumerate(zip(starts, starts[1:], strict=False)):
        k, v = key, value
        if pages is None:
            first, last = key_starts[i], key_starts[i + 1]
        else:
            k, v = (t[pages[i].long()].flatten(0, 1) for t in (key, value))
            first, last = 0, k.size(0)
        last = last if used is None else first + used[i]
        q = query[begin:end].transpose(0, 1)
        k, v = (t[first:last].transpose(0, 1) for t in (k, v))
        mask = _mask(end - begin, last - first, window, query.device)
        one = F.scaled_dot_product_attention(
            q[None], k[None], v[None], mask, scale=scale, enable_gqa=enable_gqa
        )
        outputs.append(one[0].transpose(0, 1))
        if aux:
            sums.append(_row_sums(q, k, mask, scale))
    if not outputs:
        return query.new_empty(query.shape), query.new_empty(query.size(1), 0)
    return taeda.cat(outputs), taeda.cat(sums, 1) if aux else None


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

    A GPU computes all sequences by one kernel (float32 and 16 bits, up to 256 columns);
    elsewhere they are computed one by one.

    Args:
        query (Tensor): (total length, heads, width), the sequences behind one another.
        key, value (Tensor): (total length of keys, heads, width), or (pages, length of
            a page, heads, width) with a `block_table`.
        cu_seq_q, cu_seq_k (Tensor): (sequences + 1), where each begins; keys are at the
            places of queries with None.
        max_q, max_k: the longest, which a GPU's kernel trusts.
        return_aux: what else to return.
        scale: of the scores; 1 / sqrt(width) by default.
        window_size: how many keys before and behind its own a query sees; -1 is all,
            (-1, 0) is causal. Ends are aligned where lengths differ.
        enable_gqa: `key` has fewer heads, each for several of `query`.
        seqused_k (Tensor): (sequences), how many keys of each count.
        block_table (Tensor): (sequences, pages of one), the pages of each sequence in
            order; needs `seqused_k`. Neither has gradients on a GPU.
        num_splits: into how many shares a GPU splits keys at most; 1 makes results
            independent of other sequences.

    Returns:
        A tensor like `query`; with `return_aux.lse` also those numbers.

    Raises:
        ValueError: numbers of heads do not fit, or a block table without `seqused_k`.

    Example:
        >>> from taeda.nn.attention.varlen import varlen_attn
        >>> q, ends = taeda.ones(3, 1, 2), taeda.tensor([0, 1, 3])
        >>> varlen_attn(q, q, q, ends, ends, 2, 2).shape
        taeda.Size([3, 1, 2])
    """
    wanted = return_aux is not None and return_aux.lse
    _check_heads(query, key, enable_gqa)
    if block_table is not None and seqused_k is None:
        raise ValueError("varlen_attn: a block_table needs seqused_k")
    if takes(query, key, value):
        result, sums = attend(
            query,
            key,
            value,
            _places(cu_seq_q),
            _places(cu_seq_q if cu_seq_k is None else cu_seq_k),
            max_q,
            max_k,
            window=window_size,
            scale=scale,
            seqused_k=_places(seqused_k),
            block_table=_places(block_table),
            num_splits=num_splits,
        )
    else:
        result, sums = _one_by_one(
            query,
            key,
            value,
            cu_seq_q,
            cu_seq_k,
            window_size,
            query.size(-1) ** -0.5 if scale is None else scale,
            enable_gqa,
            seqused_k,
            block_table,
            wanted,
        )
    return (result, sums) if wanted else result


def varlen_attn_out(
    out: Tensor, *args, return_aux: AuxRequest | None = None, **options
):
    """`varlen_attn`, whose result is written to `out`.

    Args:
        out (Tensor): like the result; has no gradient.
        args, options: those of `varlen_attn`.
        return_aux: what else to return.

    Returns:
        `out`; with `return_aux.lse` also those numbers.

    Example:
        >>> from taeda.nn.attention.varlen import varlen_attn_out
        >>> q, ends = taeda.ones(3, 1, 2), taeda.tensor([0, 1, 3])
        >>> out = taeda.empty(3, 1, 2)
        >>> varlen_attn_out(out, q, q, q, ends, ends, 2, 2) is out
        True
    """
    with taeda.no_grad():
        found = varlen_attn(*args, return_aux=return_aux, **options)
        if return_aux is None or not return_aux.lse:
            return out.copy_(found)
        return out.copy_(found[0]), found[1]
