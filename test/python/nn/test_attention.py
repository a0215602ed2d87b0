"""nn.attention: kernel choice, causal masks, flex_attention."""

from __future__ import annotations

import copy
import pickle

import pytest
import taeda
from taeda.nn.attention import SDPBackend, bias, sdpa_kernel
from taeda.nn.attention import flex_attention as flex

attend = taeda.nn.functional.scaled_dot_product_attention


def qkv(length=6, keys=6, heads=2, dtype=None):
    taeda.manual_seed(0)
    dtype = taeda.float64 if dtype is None else dtype
    shapes = ((2, 2, length, 4), (2, heads, keys, 4), (2, heads, keys, 4))
    return [taeda.randn(*shape, dtype=dtype) for shape in shapes]


def causal(b, h, q, k):
    return q >= k


def test_backends_are_singletons():
    assert SDPBackend(0) is SDPBackend.MATH
    assert SDPBackend["MATH"] is SDPBackend.MATH and int(SDPBackend.MATH) == 0
    assert pickle.loads(pickle.dumps(SDPBackend.MATH)) is SDPBackend.MATH
    assert copy.deepcopy(SDPBackend.MATH) is SDPBackend.MATH
    with pytest.raises(ValueError):
        SDPBackend(17)


def test_sdpa_kernel_is_context_and_decorator():
    x = qkv()
    want = attend(*x)
    with sdpa_kernel([SDPBackend.MATH], set_priority=True):
        assert taeda.allclose(attend(*x), want)
    assert taeda.allclose(sdpa_kernel(SDPBackend.MATH)(attend)(*x), want)
    with pytest.raises(AssertionError):
        sdpa_kernel("math")


@pytest.mark.parametrize("keys", [6, 9])
def test_causal_biases(keys):
    x = qkv(keys=keys)
    for make, offset in (
        (bias.causal_upper_left, 0),
        (bias.causal_lower_right, keys - 6),
    ):
        mask = taeda.ones(6, keys, dtype=taeda.bool).tril(offset)
        have = attend(*x, attn_mask=make(6, keys))
        assert taeda.allclose(have, attend(*x, attn_mask=mask))


@pytest.mark.parametrize("size", [4, 128])
def test_flex_attention_with_mask_and_scores(size):
    x = qkv()
    mask = flex.create_block_mask(causal, None, None, 6, 6, BLOCK_SIZE=size)
    have = flex.flex_attention(*x, block_mask=mask)
    assert taeda.allclose(have, attend(*x, is_causal=True))
    distance = (taeda.arange(6)[:, None] - taeda.arange(6)).to(taeda.float64)
    have = flex.flex_attention(*x, score_mod=lambda s, b, h, q, k: s + (q - k))
    assert taeda.allclose(have, attend(*x, attn_mask=distance))


def test_flex_attention_groups_aux_and_blind_rows():
    q, k, v = qkv(heads=1)
    with pytest.raises(ValueError, match="enable_gqa"):
        flex.flex_attention(q, k, v)
    have = flex.flex_attention(q, k, v, enable_gqa=True)
    want = attend(q, k.expand(-1, 2, -1, -1), v.expand(-1, 2, -1, -1))
    assert taeda.allclose(have, want)
    blind = flex.create_block_mask(lambda b, h, q, k: q > k, None, None, 6, 6)
    q.requires_grad_()
    request = flex.AuxRequest(lse=True, max_scores=True)
    out, aux = flex.flex_attention(
        q, k, v, block_mask=blind, enable_gqa=True, return_aux=request
    )
    assert float(out[:, :, 0].abs().sum()) == 0
    assert float(aux.lse[0, 0, 0]) == -float("inf")
    out.sum().backward()
    assert bool(q.grad.isfinite().all())


def test_block_mask_lists():
    mask = flex.create_block_mask(causal, 1, 1, 8, 8, BLOCK_SIZE=4)
    assert mask.shape == (1, 1, 8, 8) and mask.sparsity() == 25.0
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert mask.full_q_num_blocks.tolist() == [[[1, 0]]]
    with pytest.raises(RuntimeError, match="sliced"):
        mask[0].mask_mod(*[taeda.zeros(1)] * 4)
    both = flex.and_masks(causal, lambda b, h, q, k: q - k < 2)
    assert int(flex.create_mask(both, None, None, 4, 4).sum()) == 7
    with pytest.raises(RuntimeError, match="callable"):
        flex.or_masks(1)


def test_block_mask_is_torchs(torch):
    from torch.nn.attention import flex_attention as peer

    def band(b, h, q, k):
        return (q >= k) & (q - k < 5)

    want = peer.create_block_mask(band, 1, 2, 20, 12, device="cpu", BLOCK_SIZE=4)
    have = flex.create_block_mask(band, 1, 2, 20, 12, BLOCK_SIZE=4)
    for name in have._TENSORS[:8]:
        counts = getattr(want, name)
        assert getattr(have, name).tolist() == counts.tolist(), name
    assert have.to_string() == want.to_string()


@pytest.mark.parametrize("shape", [(0, 4, 8), (4, 0, 8), (0, 0, 8)], ids=str)
@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_over_nothing(shape, batch_first):
    x = taeda.ones(shape, requires_grad=True)
    layer = taeda.nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
    layer(x).sum().backward()
    assert x.grad.shape == shape
    attention = taeda.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    out, weights = attention(x, x, x)
    batch, length = shape[:2] if batch_first else shape[1::-1]
    assert out.shape == shape and weights.shape == (batch, length, length)


def test_a_padding_mask_has_one_row_for_all_queries():
    layer = taeda.nn.MultiheadAttention(8, 2, batch_first=True)
    x, masked = taeda.randn(2, 3, 8), taeda.tensor([[False, False, True]] * 2)
    with_weights, _ = layer(x, x, x, masked)
    without, _ = layer(x, x, x, masked, need_weights=False)
    assert taeda.allclose(with_weights, without, atol=1e-6)


def test_what_attends_to_itself_may_be_viewed() -> None:
    module = taeda.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = taeda.randn(3, 4, 8)
    with taeda.no_grad():
        assert module(x, x, x)[0].view(-1, 8).shape == (12, 8)


@pytest.mark.parametrize(
    "dtype", [taeda.float16, taeda.float32, taeda.float64], ids=str
)
@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_blind_rows_have_no_gradient(backend, dtype):
    """Where a mask leaves a query nothing, its result and its gradient are zeros."""
    q, k, v = (taeda.randn(2, 3, n, 8).to(dtype).requires_grad_() for n in (5, 7, 7))
    mask = taeda.tensor([True, False, True, False, True])[:, None]
    with sdpa_kernel(backend):
        out = taeda.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    out.sum().backward()
    assert taeda.equal(out[:, :, 1::2], taeda.zeros_like(out[:, :, 1::2]))
    assert taeda.equal(q.grad[:, :, 1::2], taeda.zeros_like(q.grad[:, :, 1::2]))
    assert all(x.grad.isfinite().all() for x in (q, k, v))


def test_safe_softmax_of_nothing_has_no_gradient():
    x = taeda.full((2, 4), -float("inf"))
    x[1, 2:] = taeda.tensor([1.0, 2.0])
    x.requires_grad_()
    out = taeda.ops.aten._safe_softmax(x, -1)
    (out * taeda.arange(4.0)).sum().backward()
    assert taeda.equal(out[0], taeda.zeros(4))
    assert taeda.equal(x.grad[0], taeda.zeros(4))
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_heads_of_no_width_attend_evenly(backend):
    q, k = taeda.zeros(2, 3, 4, 0), taeda.zeros(2, 3, 5, 0)
    v = taeda.randn(2, 3, 5, 8)
    with sdpa_kernel([backend, SDPBackend.MATH]):
        out = taeda.nn.functional.scaled_dot_product_attention(q, k, v)
    assert taeda.allclose(out, v.mean(-2, keepdim=True).expand_as(out), atol=1e-6)
