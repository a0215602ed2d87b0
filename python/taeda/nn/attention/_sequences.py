"""Attention over many sequences by one kernel of a GPU."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = ["attend", "takes"]

_DTYPES = (taeda.float32, taeda.float16, taeda.bfloat16)
_MOST_WIDTH = 256


def takes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool = True) -> bool:
    """Whether the kernel has the case; heads are the last dim but one."""
    from . import SDPBackend, _allowed

    heads, of_keys = query.size(-2), key.size(-2)
    shares = enable_gqa and of_keys > 0 and heads % of_keys == 0
    return (
        query.is_cuda
        and query.dtype in _DTYPES
        and key.dtype == value.dtype == query.dtype
        and max(query.size(-1), value.size(-1)) <= _MOST_WIDTH
        and (heads == of_keys or shares)
        and any(
            way in _allowed()
            for way in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)
        )
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor | None,
    key_starts: Tensor | None,
    longest: int,
    longest_key: int,
    dropout_p: float = 0.0,
    window: tuple[int, int] = (-1, -1),
    **options,
) -> tuple[Tensor, Tensor]:
    """The result and the log sums, (heads, rows) or (batch, heads, rows)."""
    inference = ("seqused_k", "block_table")
    if taeda.is_grad_enabled() and any(t.requires_grad for t in (query, key, value)):
        for name in inference:
            if options.get(name) is not None:
                raise RuntimeError(f"{name} is an inference-only parameter.")
    if taeda.is_autocast_enabled("cuda"):
        kind = taeda.get_autocast_dtype("cuda")
        query, key, value = (t.to(kind) for t in (query, key, value))
    found = taeda.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        starts,
        key_starts,
        longest,
        longest_key,
        dropout_p,
        False,
        False,
        window_size_left=window[0],
        window_size_right=window[1],
        **options,
    )
    return found[0], found[1]
