"""Causal masks that attention knows without reading them."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._choice import Choice

from .. import functional as F
from .._native import warn
from ._sequences import attend, takes

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(Choice):
    """Where the diagonal of a causal mask begins: at which corner."""

    __slots__ = ()
    _values = {"UPPER_LEFT": 1, "LOWER_RIGHT": 2}


class CausalBias(Tensor):
    """A causal mask (L, S) for `scaled_dot_product_attention`, not stored.

    Args:
        variant: which corner the diagonal begins at; both are one where L = S.
        seq_len_q, seq_len_kv: L and S.

    Raises:
        AssertionError: `variant` is no CausalVariant.

    Example:
        >>> taeda.nn.attention.bias.causal_lower_right(1, 2)
        tensor([[True, True]])
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(
                f"variant must be a CausalVariant, got {type(variant).__name__}"
            )
        return Tensor._make_subclass(cls, taeda.empty(0), False)

    def __init__(self, variant, seq_len_q, seq_len_kv) -> None:
        self.variant = variant
        self.seq_len_q, self.seq_len_kv = seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warn(
                "Lower right causal bias will produce NaNs in the output when "
                "seq_len_q > seq_len_kv!"
            )

    def _materialize(self, device=None) -> Tensor:
        """The mask as booleans."""
        size = (self.seq_len_q, self.seq_len_kv)
        lower = self.variant is CausalVariant.LOWER_RIGHT
        ones = taeda.ones(size, device=device, dtype=taeda.bool)
        return ones.tril(diagonal=size[1] - size[0] if lower else 0)

    @staticmethod
    def _attend(
        query,
        key,
        value,
        attn_mask,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        known = square or attn_mask.variant is CausalVariant.UPPER_LEFT
        lengths = attn_mask.seq_len_q, attn_mask.seq_len_kv
        fits = query.ndim == key.ndim == value.ndim == 4 and lengths == (
            query.size(2),
            key.size(2),
        )
        if not known and fits and query.size(0) == key.size(0):
            rows = [t.transpose(1, 2) for t in (query, key, value)]
            if takes(*rows, enable_gqa):
                found, _ = attend(
                    *rows, None, None, *lengths, dropout_p, (-1, 0), scale=scale
                )
                return found.transpose(1, 2)
        mask = None if known else attn_mask._materialize(query.device)
        options = {"scale": scale, "enable_gqa": enable_gqa}
        return F.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, known, **options
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            return cls._attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self) -> str:
        return repr(self._materialize())


def _both(name, size):
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size


def causal_upper_left(*size) -> CausalBias:
    """The mask of size (L, S) in which query i sees keys 0 to i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_both("causal_upper_left", size))


def causal_lower_right(*size) -> CausalBias:
    """The mask of size (L, S) in which the last query sees all keys."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_both("causal_lower_right", size))
