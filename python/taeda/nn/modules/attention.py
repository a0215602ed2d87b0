"""Multi-head attention."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .. import functional as F
from .. import init
from .._types import MaybeDevice, MaybeDtype, MaybeInt, MaybeTensor
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

# The class shows itself as part of activation.py, where PyTorch has it.
__name__ = f"{__package__}.activation"


class MultiheadAttention(Module):
    """Concatenated heads softmax(Q_i K_i^T / sqrt(d)) V_i, projected.

    Vaswani et al., "Attention Is All You Need", 2017.

    Args:
        embed_dim: width E of queries and output.
        num_heads: heads; divides E.
        dropout: of the attention weights, while training.
        bias: whether the projections have biases.
        add_bias_kv: learn a key and a value that are put after the others.
        add_zero_attn: put a zero after keys and values.
        kdim, vdim: widths of keys and values; default E.
        batch_first: (N, L, E) rather than (L, N, E).
        device, dtype: of the parameters.

    Attributes:
        in_proj_weight (Tensor): (3E, E), or q_, k_, v_proj_weight where widths differ.
        in_proj_bias (Tensor): (3E,).
        out_proj (Linear): E to E.

    Raises:
        ValueError: a width or head count not above 0.
        AssertionError: heads that do not divide E.

    Example:
        >>> x = taeda.ones(5, 1, 4)
        >>> output, weights = taeda.nn.MultiheadAttention(4, 2)(x, x, x)
        >>> tuple(output.shape), tuple(weights.shape)
        ((5, 1, 4), (1, 5, 5))
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: MaybeInt = None,
        vdim: MaybeInt = None,
        batch_first: bool = False,
        device: MaybeDevice = None,
        dtype: MaybeDtype = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        if embed_dim % num_heads != 0:
            raise AssertionError("embed_dim must be divisible by num_heads")
        kdim, vdim = (embed_dim if d is None else d for d in (kdim, vdim))
        self.__dict__.update(
            embed_dim=embed_dim,
            kdim=kdim,
            vdim=vdim,
            _qkv_same_embed_dim=kdim == vdim == embed_dim,
            num_heads=num_heads,
            dropout=dropout,
            batch_first=batch_first,
            head_dim=embed_dim // num_heads,
            add_zero_attn=add_zero_attn,
        )
        kind = {"device": device, "dtype": dtype}
        same = self._qkv_same_embed_dim
        packed = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        separate = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, kdim),
            "v_proj_weight": (embed_dim, vdim),
        }
        # Order as PyTorch registers them: the used ones first.
        for shapes, used in ((packed, same), (separate, not same)):
            for name, shape in shapes.items() if used else ():
                setattr(self, name, Parameter(taeda.empty(shape, **kind)))
        for name in separate if same else packed:
            self.register_parameter(name, None)
        values = taeda.empty(3 * embed_dim, **kind) if bias else None
        self.register_parameter("in_proj_bias", Parameter(values) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias, **kind
        )
        for name in ("bias_k", "bias_v"):
            values = taeda.empty((1, 1, embed_dim), **kind) if add_bias_kv else None
            setattr(self, name, None if values is None else Parameter(values))
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj", "q_proj", "k_proj", "v_proj"):
            weight = getattr(self, name + "_weight")
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: MaybeTensor = None,
        need_weights: bool = True,
        attn_mask: MaybeTensor = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """See `nn.functional.multi_head_attention_forward` for the arguments."""
        other = F._none_or_dtype(attn_mask)
        key_padding_mask = F._canonical_mask(
            key_padding_mask, "key_padding_mask", other, "attn_mask", query.dtype
        )
        attn_mask = F._canonical_mask(
            attn_mask, "attn_mask", None, "", query.dtype, check_other=False
        )
        if query.is_nested or key.is_nested or value.is_nested:
            raise NotImplementedError("MultiheadAttention: nested tensors")
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = _time_first(query, key, value)
        same = self._qkv_same_embed_dim
        out, sizes = self.out_proj, (self.embed_dim, self.num_heads)
        packed = (self.in_proj_weight, self.in_proj_bias)
        extra = (self.bias_k, self.bias_v, self.add_zero_attn)
        last = (self.dropout, out.weight, out.bias, self.training)
        output, weights = F.multi_head_attention_forward(
            *(query, key, value),
            *sizes,
            *packed,
            *extra,
            *last,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not same,
            q_proj_weight=None if same else self.q_proj_weight,
            k_proj_weight=None if same else self.k_proj_weight,
            v_proj_weight=None if same else self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if swap:
            output = output.transpose(1, 0)
            # As PyTorch's fast path lays it out, so that a program may view it.
            if not self.training and not output.requires_grad and key is query:
                output = output.contiguous()
        return output, weights

    def merge_masks(
        self,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        query: Tensor,
    ) -> tuple[Tensor | None, MaybeInt]:
        """One mask (N, heads, L, L) of both, and its kind.

        Returns:
            (mask, kind): kind 1 where only `key_padding_mask` is given (as it is),
            2 where there is an `attn_mask`, None without masks.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch = query.size(0)
        if attn_mask.dim() == 2:
            attn_mask = attn_mask.expand(batch * self.num_heads, -1, -1)
        merged = attn_mask.unflatten(0, (batch, -1))
        if key_padding_mask is not None:
            merged = merged + key_padding_mask[:, None, None]
        return merged, 2


def _time_first(query, key, value):
    """(N, L, E) -> (L, N, E); what was one tensor stays one."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    if value is key:
        return q, k, k
    return q, k, q if value is query else value.transpose(1, 0)
