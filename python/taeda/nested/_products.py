"""Products, normalisations and attention over nested tensors."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.nn.attention._sequences import attend, takes

from ._padding import from_padded, padded
from ._rules import require_same
from ._tensor import NestedTensor

__all__ = ["RULES"]


def _no_dense_front(nt: NestedTensor, count: int, name: str) -> None:
    """An operator over the last dims must not meet the ragged one."""
    if nt._ragged_idx >= nt.ndim - count:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")


def _linear(func, input, weight, bias=None):
    if not isinstance(input, NestedTensor):
        raise NotImplementedError("NestedTensor: linear with nested weights")
    _no_dense_front(input, 1, "linear")
    return input._like(func(input._values, weight, bias))


def _layer_norm(func, input, normalized_shape, *args, **kwargs):
    if input.ndim <= 2:
        raise RuntimeError(
            "layer_norm(): not supported for NestedTensor objects with 2 or fewer "
            "dimensions"
        )
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    if count >= input.ndim:
        raise RuntimeError(
            "layer_norm(): not supported when normalizing over the batch dimension for "
            "NestedTensor"
        )
    if input._ragged_idx >= input.ndim - count:
        return _layer_norm_of_entries(func, input, count, *args, **kwargs)
    return input._like(func(input._values, normalized_shape, *args, **kwargs))


def _layer_norm_of_entries(func, input, count: int, *args, **kwargs):
    """Over the ragged dim, too: each entry by itself."""
    if input._ragged.lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the "
            "ragged dimension for NestedTensor"
        )
    found = [
        func(t, t.shape[t.ndim - count :], *args, **kwargs) for t in input.unbind()
    ]
    return input._like(taeda.cat(found, input._ragged_idx - 1))


def _rms_norm(func, input, normalized_shape, *args, **kwargs):
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    _no_dense_front(input, count, "rms_norm")
    return input._like(func(input._values, normalized_shape, *args, **kwargs))


def _embedding(func, *args, **kwargs):
    """Of nested numbers, which the public function takes first."""
    values = [a._values if isinstance(a, NestedTensor) else a for a in args]
    numbers = next(a for a in args if isinstance(a, NestedTensor))
    return numbers._like(func(*values, **kwargs))


def _through_padding(nt: NestedTensor, compute):
    dense = compute(padded(nt, 0))
    return nt._like(from_padded(dense, nt._ragged, nt._ragged_idx))


def _matmul(func, input, other):
    """Products in which the ragged dim is a batch, a row or what is summed over."""
    a, b = input, other
    a_nested, b_nested = isinstance(a, NestedTensor), isinstance(b, NestedTensor)
    if a_nested and not b_nested and a._ragged_idx < a.ndim - 1:
        if b.ndim == 2 and a.ndim > 2:
            return a._like(taeda.matmul(a._values, b))
        if a.ndim >= 3 and b.ndim == a.ndim and b.shape[0] == len(a):
            return _through_padding(a, lambda dense: taeda.matmul(dense, b))
    if b_nested and not a_nested and b._ragged_idx >= 2 and b.ndim > 2:
        if a.ndim == 2:
            if b._ragged_idx == b.ndim - 2:
                raise _unfit(a, b)
            return b._like(taeda.matmul(a, b._values))
        if a.ndim == b.ndim and a.shape[0] == len(b) and b._ragged_idx == b.ndim - 1:
            return _through_padding(b, lambda dense: taeda.matmul(a, dense))
    if a_nested and b_nested and a._ragged.size == b._ragged.size:
        if a.ndim == b.ndim > 3 and max(a._ragged_idx, b._ragged_idx) < a.ndim - 2:
            require_same("matmul", a, b)
            return a._like(taeda.matmul(a._values, b._values))
        if a.ndim == b.ndim == 3 and (a._ragged_idx, b._ragged_idx) == (2, 1):
            pairs = zip(a.unbind(), b.unbind(), strict=True)
            return taeda.stack([x @ y for x, y in pairs])
    raise _unfit(a, b)


def _unfit(a: Tensor, b: Tensor) -> RuntimeError:
    first = tuple(a.shape) if a.is_nested else a.shape
    return RuntimeError(
        f"matmul(): not supported between inputs of shapes {first} and {b.shape}"
    )


def _bmm(func, input, mat2):
    for t, name in ((input, "input"), (mat2, "mat2")):
        if t.ndim != 3:
            raise ValueError(f"bmm(): {name} must be 3D")
    return _matmul(func, input, mat2)


def _attention(
    func,
    query,
    key,
    value,
    attn_mask=None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
):
    """Each sequence attends to itself, or to the other's of its number.

    Queries, keys and values are (batch, heads, ragged, width), as `transpose(1, 2)`
    of (batch, ragged, heads, width) makes them; of (batch, ragged, length, width) each
    of the ragged dim's is a head.
    """
    three = (query, key, value)
    if not all(isinstance(t, NestedTensor) for t in three):
        raise ValueError(
            "scaled_dot_product_attention: expected query, key and value to be nested"
        )
    places = {t._ragged_idx for t in three}
    if any(t.ndim != 4 for t in three) or places not in ({1}, {2}):
        raise ValueError(
            "scaled_dot_product_attention: expected query, key and value of (batch, "
            "heads, ragged, width) or (batch, ragged, length, width)"
        )
    if attn_mask is not None:
        raise RuntimeError("Masks are not yet supported in SDPA for nested tensors")
    require_same("scaled_dot_product_attention", key, value)
    if len(query) != len(key):
        raise RuntimeError("scaled_dot_product_attention: batches differ")
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    options["enable_gqa"] = enable_gqa
    if places == {1}:
        for other in (key, value):
            require_same("scaled_dot_product_attention", query, other)
        return query._like(func(*(t._values for t in three), **options))
    found = _attention_at_once(three, dropout_p, is_causal, scale, enable_gqa)
    if found is not None:
        return query._like(found)
    found = [
        func(*(t.unsqueeze(0) for t in entries), **options).squeeze(0)
        for entries in zip(*(t.unbind() for t in three), strict=True)
    ]
    return query._like(taeda.cat(found, 1))


def _attention_at_once(three, dropout_p, is_causal, scale, enable_gqa) -> Tensor | None:
    """All sequences by one kernel, where it has the case."""
    query, key, _ = three
    rows = [t._values.transpose(0, 1) for t in three]
    # Of other lengths the kernel aligns ends, where this aligns begins.
    aligned = not is_causal or query._ragged.size == key._ragged.size
    whole = query._ragged.lengths is None and key._ragged.lengths is None
    if not (aligned and whole and takes(*rows, enable_gqa)):
        return None
    found, _ = attend(
        *rows,
        query._ragged.starts(),
        key._ragged.starts(),
        query._ragged.longest(),
        key._ragged.longest(),
        dropout_p,
        (-1, 0 if is_causal else -1),
        scale=scale,
    )
    return found.transpose(0, 1)


RULES = {
    "linear": _linear,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "embedding": _embedding,
    "matmul": _matmul,
    "bmm": _bmm,
    "scaled_dot_product_attention": _attention,
}
