"""Attention: scaled dot products, and all heads of a multi-head layer."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from .._native import native, overrides_any, relay, warn
from .._types import MaybeTensor

__name__ = __package__

scaled_dot_product_attention = native("scaled_dot_product_attention")
_linear, _pad = native("linear"), native("pad")
_bmm, _baddbmm, _dropout = native("bmm"), native("baddbmm"), native("dropout")


def _require(fine: bool, text: str) -> None:
    if not fine:
        raise AssertionError(text)


def _canonical_mask(
    mask, mask_name, other_type, other_name, target_type, check_other=True
):
    """A mask to add to the scores: -inf where a boolean mask is True."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    boolean = mask.dtype == taeda.bool
    _require(
        floating or boolean,
        f"only bool and floating types of {mask_name} are supported",
    )
    if check_other and other_type is not None and mask.dtype != other_type:
        warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use "
            "same type for both instead."
        )
    if floating:
        return mask
    empty = taeda.zeros_like(mask, dtype=target_type)
    return empty.masked_fill_(mask, -math.inf)


def _none_or_dtype(input):
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _parts(packed):
    """Split (..., k * E) projections made by one product into k tensors."""

    def split(product, k):
        wide = product.unflatten(-1, (k, product.size(-1) // k))
        return wide.unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous().unbind(0)

    return split(*packed)


def _in_projection_packed(q, k, v, w, b=None):
    """Query, key and value projections by the packed weight (3E, E)."""
    width = q.size(-1)
    if q is k and k is v:
        return _parts((_linear(q, w, b), 3))
    if k is v:
        sizes = [width, 2 * width]
        w_q, w_kv = w.split(sizes)
        b_q, b_kv = (None, None) if b is None else b.split(sizes)
        return _linear(q, w_q, b_q), *_parts((_linear(k, w_kv, b_kv), 2))
    biases = (None,) * 3 if b is None else b.chunk(3)
    return tuple(map(_linear, (q, k, v), w.chunk(3), biases))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Query, key and value projections by a weight each."""
    width = q.size(-1)
    for name, x, w, b in (
        ("query", q, w_q, b_q),
        ("key", k, w_k, b_k),
        ("value", v, w_v, b_v),
    ):
        wanted = (width, x.size(-1))
        _require(
            tuple(w.shape) == wanted,
            f"expecting {name} weights shape of {wanted}, but got {w.shape}",
        )
        _require(
            b is None or tuple(b.shape) == (width,),
            f"expecting {name} bias shape of {(width,)}, but got "
            f"{None if b is None else b.shape}",
        )
    return _linear(q, w_q, b_q), _linear(k, w_k, b_k), _linear(v, w_v, b_v)


def _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Whether there is a batch; raises when the ranks do not fit together."""
    rank = query.dim()
    _require(
        rank in (2, 3),
        "query should be unbatched 2D or batched 3D tensor but received "
        f"{rank}-D query tensor",
    )
    kind = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`"
    _require(
        key.dim() == value.dim() == rank,
        f"{kind}, expected `key` and `value` to be {rank}-D but found {key.dim()}-D "
        f"and {value.dim()}-D tensors respectively",
    )
    if key_padding_mask is not None:
        _require(
            key_padding_mask.dim() == rank - 1,
            f"{kind}, expected `key_padding_mask` to be `None` or {rank - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask.dim() in (2, 3),
            f"{kind}, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead",
        )
        if rank == 2 and attn_mask.dim() == 3:
            wanted = (num_heads, query.shape[0], key.shape[0])
            _require(
                tuple(attn_mask.shape) == wanted,
                f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}",
            )
    return rank == 3


def _mask_3d(mask, target, source, batch_heads):
    """An attention mask of three dimensions, its sizes checked."""
    wanted = {2: (target, source), 3: (batch_heads, target, source)}.get(mask.dim())
    if wanted is None:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be "
            f"{wanted}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _head_first(x, given, name, batch_heads, head_dim):
    """(L, N, E) -> (N * heads, L, head_dim); a given static tensor as it is."""
    if given is None:
        return x.view(x.shape[0], batch_heads, head_dim).transpose(0, 1)
    for at, wanted in ((0, batch_heads), (2, head_dim)):
        _require(
            given.size(at) == wanted,
            f"expecting {name}.size({at}) of {wanted}, but got {given.size(at)}",
        )
    return given


def _longer(mask):
    """A mask with one more source position, which is seen."""
    return None if mask is None else _pad(mask, (0, 1))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: MaybeTensor,
    in_proj_bias: MaybeTensor,
    bias_k: MaybeTensor,
    bias_v: MaybeTensor,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: MaybeTensor,
    training: bool = True,
    key_padding_mask: MaybeTensor = None,
    need_weights: bool = True,
    attn_mask: MaybeTensor = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: MaybeTensor = None,
    k_proj_weight: MaybeTensor = None,
    v_proj_weight: MaybeTensor = None,
    static_k: MaybeTensor = None,
    static_v: MaybeTensor = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
):
    """softmax(Q K^T / sqrt(d) + mask) V for every head, between projections.

    Vaswani et al., "Attention Is All You Need", 2017. `MultiheadAttention` is the
    layer that holds the weights.

    Args:
        query, key, value (Tensor): (L, N, E), (S, N, Ek), (S, N, Ev), or without N.
        embed_dim_to_check: E.
        num_heads: divides E.
        in_proj_weight, in_proj_bias (Tensor): (3E, E), (3E,).
        bias_k, bias_v (Tensor): (1, 1, E), put after keys and values.
        add_zero_attn: put a zero after keys and values.
        dropout_p: of the weights, while `training`.
        out_proj_weight, out_proj_bias (Tensor): (E, E), (E,).
        key_padding_mask (Tensor): (N, S); True, or -inf, hides a key.
        need_weights: return the attention weights (else a fused kernel is used).
        attn_mask (Tensor): (L, S) or (N * heads, L, S), True or -inf hides.
        use_separate_proj_weight: use q_, k_, v_proj_weight instead of the packed one.
        static_k, static_v (Tensor): (N * heads, S, E / heads), used as they are.
        average_attn_weights: the mean over the heads.
        is_causal: `attn_mask` is the causal one, which a fused kernel knows.

    Returns:
        (Tensor, Tensor | None): (L, N, E), and (N, L, S) or (N, heads, L, S).

    Raises:
        AssertionError: shapes that do not fit together.
        RuntimeError: a mask of the wrong shape; `is_causal` without a mask.
    """
    given = locals()
    tensors = (query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v)
    tensors += (out_proj_weight, out_proj_bias)
    if overrides_any(*tensors):
        return relay(multi_head_attention_forward, tensors, given)
    masks = (key_padding_mask, attn_mask)
    batched = _check_ranks(query, key, value, *masks, num_heads)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    target, batch, width = query.shape
    padding, mask, is_causal = _masks(
        key_padding_mask, attn_mask, query.dtype, is_causal, need_weights
    )
    _require(
        width == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}",
    )
    head_dim, heads = width // num_heads, batch * num_heads
    _require(
        head_dim * num_heads == width,
        f"embed_dim {width} not divisible by num_heads {num_heads}",
    )
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    packed = None if use_separate_proj_weight else in_proj_weight
    q, k, v = _project(query, key, value, packed, weights, in_proj_bias)
    if mask is not None:
        mask = _mask_3d(mask, target, key.shape[0], heads)
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k, v = (
            taeda.cat([x, extra.repeat(1, batch, 1)])
            for x, extra in ((k, bias_k), (v, bias_v))
        )
        mask, padding = _longer(mask), _longer(padding)
    else:
        _require(bias_k is bias_v, "bias_k and bias_v must both be set or both None")
    q = _head_first(q, None, "", heads, head_dim)
    k = _head_first(k, static_k, "static_k", heads, head_dim)
    v = _head_first(v, static_v, "static_v", heads, head_dim)
    if add_zero_attn:
        zero = taeda.zeros((heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = taeda.cat([k, zero], dim=1), taeda.cat([v, zero.to(v.dtype)], dim=1)
        mask, padding = _longer(mask), _longer(padding)
    if padding is not None:
        padding = _per_head(padding, batch, num_heads, k.size(1))
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0
    attend = _weighted_sum if need_weights else _fused
    output, weights = attend(q, k, v, mask, dropout_p, num_heads, is_causal)
    output = _linear(output, out_proj_weight, out_proj_bias)
    output = output.view(target, batch, output.size(1))
    if weights is not None and average_attn_weights:
        weights = weights.mean(dim=1)
    if not batched:
        output = output.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights


def _with_batch(query, key, value):
    """Batch of one; what was one tensor stays one, so that it is projected once."""
    wide = query.unsqueeze(1)
    wide_key = wide if key is query else key.unsqueeze(1)
    if value is key:
        return wide, wide_key, wide_key
    return wide, wide_key, wide if value is query else value.unsqueeze(1)


def _masks(padding, mask, dtype, is_causal, need_weights):
    """Both masks as numbers to add, and whether the causal kernel may be used."""
    other = _none_or_dtype(mask)
    names = ("key_padding_mask", other, "attn_mask")
    padding = _canonical_mask(padding, *names, dtype)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint: the hint only describes "
            "the mask that Transformer.generate_square_subsequent_mask makes"
        )
    if is_causal and padding is None and not need_weights:
        return None, None, True
    mask = _canonical_mask(mask, "attn_mask", None, "", dtype, False)
    return padding, mask, is_causal and padding is None


def _project(query, key, value, packed, weights, bias):
    if packed is not None:
        _require(
            key.shape == value.shape,
            f"key shape {key.shape} does not match value shape {value.shape}",
        )
        return _in_projection_packed(query, key, value, packed, bias)
    for name, weight in zip("qkv", weights, strict=False):
        _require(weight is not None, f"neither in_proj_weight nor {name}_proj_weight")
    _require(
        key.shape[:2] == value.shape[:2],
        f"key's sequence and batch dims {key.shape[:2]} do not match value's "
        f"{value.shape[:2]}",
    )
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return _in_projection(query, key, value, *weights, *biases)


def _per_head(padding, batch, num_heads, source):
    for at, wanted in ((0, batch), (1, source)):
        _require(
            padding.shape[at] == wanted,
            f"Expected key_padded_mask.shape[{at}] to be {wanted}, but got "
            f"{padding.shape[at]}",
        )
    wide = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    return wide.reshape(batch * num_heads, 1, source)


def _weighted_sum(q, k, v, mask, dropout_p, num_heads, is_causal):
    """Step by step, keeping the weights."""
    heads, target, width = q.shape
    batch = heads // num_heads
    _require(
        mask is not None or not is_causal, "is_causal needs its mask for the weights"
    )
    q = q * math.sqrt(1.0 / float(width))
    keys = k.transpose(-2, -1)
    scores = _bmm(q, keys) if mask is None else _baddbmm(mask, q, keys)
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = _dropout(weights, dropout_p, True)
    output = _bmm(weights, v).transpose(0, 1).reshape(target * batch, num_heads * width)
    return output, weights.view(batch, num_heads, target, k.size(1))


def _fused(q, k, v, mask, dropout_p, num_heads, is_causal):
    """In one kernel, without weights."""
    heads, target, width = q.shape
    batch = heads // num_heads
    source = k.size(1)
    if mask is not None:
        if mask.size(0) == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.view(batch, num_heads, mask.size(1), source)
    q, k, v = (
        x.view(batch, num_heads, n, width)
        for x, n in ((q, target), (k, source), (v, source))
    )
    output = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    return output.permute(2, 0, 1, 3).reshape(batch * target, num_heads * width), None
