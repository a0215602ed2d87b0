"""Attention's kernels on the device: values and gradients of the CPU in double."""

from __future__ import annotations

import pytest
import taeda
from taeda.nn.attention import SDPBackend, bias, sdpa_kernel
from taeda.nn.functional import scaled_dot_product_attention as attend
from taeda.utils.flop_counter import FlopCounterMode

Tensor = taeda.Tensor

TOLERANCE = {taeda.float32: 2e-5, taeda.float16: 4e-3, taeda.bfloat16: 3e-2}
DTYPES = list(TOLERANCE)
FLASH, EFFICIENT = SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION
MATH = SDPBackend.MATH


def inputs(heads: int, shared: int, l: int, s: int, d: int, e: int) -> list[Tensor]:
    taeda.manual_seed(l + s + d)
    sizes = [(heads, l, d), (heads // shared, s, d), (heads // shared, s, e)]
    return [taeda.randn(2, *size) for size in sizes]


def close(got: Tensor, want: Tensor, bound: float) -> bool:
    got = got.cpu().double()
    return taeda.allclose(got, want, rtol=bound, atol=bound, equal_nan=True)


def agrees(
    dtype: taeda.dtype, tensors: list[Tensor], mask: Tensor | None = None, **options
) -> None:
    """Result and gradients, of the mask too where it is of numbers."""
    floats = mask is not None and mask.is_floating_point()

    def run(device: str, wide: bool, way: SDPBackend) -> list[Tensor]:
        given = []
        for t in [*tensors, mask]:
            if t is not None and t.is_floating_point():
                t = t.to(dtype).double() if wide else t.to(dtype)
            # The layout is kept: strides are part of what is tried.
            given.append(None if t is None else t.to(device).detach())
        given = [
            t.requires_grad_() if t is not None and t.is_floating_point() else t
            for t in given
        ]
        with sdpa_kernel(way):
            out = attend(*given, **options)
        weights = taeda.linspace(-1, 1, out.numel(), dtype=taeda.float64)
        weights = weights.reshape(out.shape).to(dtype).to(out.dtype).to(device)
        (out * weights).sum().backward()
        grads = [t.grad for t in given[: 4 if floats else 3]]
        return [out.detach(), *grads]

    results = run("cuda", False, EFFICIENT), run("cpu", True, MATH)
    for got, want in zip(*results, strict=True):
        assert got.is_cuda and got.dtype is dtype and got.shape == want.shape
        error = (got.cpu().double() - want).abs().amax() if want.numel() else 0
        assert close(got, want, TOLERANCE[dtype]), error


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_several_tiles(dtype: taeda.dtype, causal: bool) -> None:
    agrees(dtype, inputs(2, 1, 70, 133, 40, 40), is_causal=causal)


# Each has other tiles.
WIDTHS = [(taeda.float16, width) for width in (33, 96, 128, 160, 224, 256)]
WIDTHS += [(taeda.float32, width) for width in (96, 160, 256)]


@pytest.mark.parametrize(("dtype", "width"), [*WIDTHS, (taeda.bfloat16, 128)], ids=str)
def test_widths(dtype: taeda.dtype, width: int) -> None:
    agrees(dtype, inputs(1, 1, 19, 35, width, width))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lengths_and_odd_widths(dtype: taeda.dtype) -> None:
    for l, s, d, e in [(1, 1, 1, 1), (1, 65, 8, 8), (65, 1, 5, 3), (17, 64, 3, 34)]:
        agrees(dtype, inputs(2, 1, l, s, d, e))
    agrees(dtype, inputs(2, 1, 3, 70, 8, 8), is_causal=True)
    agrees(dtype, inputs(2, 1, 70, 3, 8, 8), is_causal=True, scale=-0.7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(dtype: taeda.dtype) -> None:
    x = inputs(2, 1, 20, 37, 16, 16)
    for shape in [(20, 37), (2, 1, 1, 37), (2, 20, 1), (1, 2, 20, 37)]:
        agrees(dtype, x, taeda.randn(shape))
        seen = taeda.rand(shape) < 0.6
        agrees(dtype, x, seen)
    # Some queries see nothing; the mask lies turned in memory.
    agrees(dtype, x, (taeda.rand(37, 20) < 0.05).mT)
    minus = taeda.zeros(20, 37).masked_fill(taeda.rand(20, 37) < 0.9, -taeda.inf)
    agrees(dtype, x, minus)


def test_a_mask_of_float_beside_small_numbers() -> None:
    q, k, v = (t.cuda().half() for t in inputs(2, 1, 20, 37, 16, 16))
    mask = taeda.randn(20, 37)
    want = attend(q.cpu().double(), k.cpu().double(), v.cpu().double(), mask.double())
    assert close(attend(q, k, v, mask.cuda()), want, 4e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_heads_that_are_shared(dtype: taeda.dtype) -> None:
    agrees(dtype, inputs(6, 3, 20, 37, 16, 8), enable_gqa=True)
    agrees(dtype, inputs(4, 4, 37, 37, 16, 16), enable_gqa=True, is_causal=True)
    mask = taeda.randn(4, 20, 37)
    agrees(dtype, inputs(4, 2, 20, 37, 16, 16), mask, enable_gqa=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strides(dtype: taeda.dtype) -> None:
    q, k, v = inputs(2, 1, 21, 40, 16, 16)
    split = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)]
    agrees(dtype, split)
    packed = taeda.randn(2, 21, 3, 2, 24)
    agrees(dtype, list(packed.permute(2, 0, 3, 1, 4).unbind()))
    turned = [t.mT.contiguous().mT for t in (q, k, v)]
    agrees(dtype, turned)
    agrees(dtype, [q[:, :, 1:], k[..., 1:, :], v[:, :1].expand(2, 2, 40, 16)[:, :, 1:]])
    agrees(dtype, [t[..., 3:11] for t in (q, k, v)])


def test_three_dims_and_none_to_compute() -> None:
    q, k, v = inputs(2, 1, 5, 7, 8, 8)
    agrees(taeda.float32, [q[0], k[0], v[0]])
    agrees(taeda.float32, [q[0, 0], k[0, 0], v[0, 0]])
    agrees(taeda.float32, [q[:, :, :0], k, v])
    agrees(taeda.float32, [q, k[:, :, :0], v[:, :, :0]])
    agrees(taeda.float32, [q[:0], k[:0], v[:0]])


def test_special_numbers() -> None:
    for special in (taeda.nan, taeda.inf):
        q, k, v = inputs(1, 1, 5, 7, 8, 8)
        v[0, 0, 3, 2] = special
        want = attend(q.double(), k.double(), v.double())
        assert close(attend(q.cuda(), k.cuda(), v.cuda()), want, 2e-5)
    huge = [(t * 100).half().cuda() for t in inputs(1, 1, 5, 7, 8, 8)]
    want = attend(*(t.cpu().double() for t in huge))
    assert close(attend(*huge), want, 4e-3)


def philox(seed: int, block: int) -> list[int]:
    """Four words of Philox4x32-10, subsequence 0 (J. Salmon et al., 2011)."""
    word, low = [block, 0, 0, 0], 2**32 - 1
    for turn in range(10):
        keys = (seed + turn * 0x9E3779B9) & low, turn * 0xBB67AE85 & low
        a, b = 0xD2511F53 * word[0], 0xCD9E8D57 * word[2]
        word = [b >> 32 ^ word[1] ^ keys[0], b & low, a >> 32 ^ word[3] ^ keys[1]]
        word.append(a & low)
    return word


def mask_of(shape: tuple, p: float, seed: int, offset: int) -> Tensor:
    """Which weights a call keeps: Note [Attention's dropout]."""
    count = taeda.Size(shape).numel()
    words = [philox(seed, n // 4)[n % 4] for n in range(offset, offset + count)]
    return (taeda.tensor(words, dtype=taeda.float64) / 2**32 > p).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dropout_is_the_same_in_both_directions(dtype: taeda.dtype) -> None:
    q, k, v = (t.to(dtype).cuda().requires_grad_() for t in inputs(2, 2, 5, 7, 8, 8))
    p = 0.3
    taeda.cuda.manual_seed(7)
    taeda.rand(5, device="cuda")
    out = attend(q, k, v, dropout_p=p, enable_gqa=True)
    out.sum().backward()
    after = taeda.cuda.get_rng_state().view(taeda.int64).tolist()
    assert after == [7, 4 + 140]
    kept = mask_of((2, 2, 5, 7), p, 7, 4)
    assert 0 < kept.sum() < kept.numel()
    wide = [t.detach().cpu().double().requires_grad_() for t in (q, k, v)]
    want, _ = taeda._scaled_dot_product_attention_math(
        *wide, dropout_p=p, dropout_mask=kept, enable_gqa=True
    )
    want.sum().backward()
    assert close(out, want, TOLERANCE[dtype])
    for got, expected in zip((q, k, v), wide, strict=True):
        assert close(got.grad, expected.grad, 2 * TOLERANCE[dtype])


def test_all_may_be_dropped() -> None:
    q, k, v = (t.cuda().requires_grad_() for t in inputs(2, 1, 5, 7, 8, 8))
    out = attend(q, k, v, dropout_p=1.0)
    out.sum().backward()
    assert all((t == 0).all() for t in (out, q.grad, k.grad, v.grad))


def test_a_captured_call_draws_anew() -> None:
    q, k, v = (t.cuda() for t in inputs(2, 1, 5, 7, 8, 8))
    attend(q, k, v, dropout_p=0.5)
    taeda.cuda.synchronize()
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        out = attend(q, k, v, dropout_p=0.5)
    taeda.cuda.manual_seed(3)
    graph.replay()
    first = out.clone()
    graph.replay()
    assert not taeda.equal(first, out)
    taeda.cuda.manual_seed(3)
    assert taeda.equal(first, attend(q, k, v, dropout_p=0.5))


def test_the_same_bits_each_time() -> None:
    def grads() -> list[Tensor]:
        x = [t.half().cuda().requires_grad_() for t in inputs(4, 2, 70, 70, 16, 16)]
        attend(*x, is_causal=True, enable_gqa=True).sum().backward()
        return [t.grad for t in x]

    assert all(map(taeda.equal, grads(), grads()))


def test_second_derivatives() -> None:
    x = inputs(4, 2, 5, 7, 8, 8)

    def twice(device: str, dtype: taeda.dtype) -> list[Tensor]:
        given = [t.to(device, dtype).requires_grad_() for t in x]
        out = attend(*given, enable_gqa=True)
        first = taeda.autograd.grad(out.pow(2).sum(), given, create_graph=True)
        return list(taeda.autograd.grad(sum(g.pow(2).sum() for g in first), given))

    both = twice("cuda", taeda.float32), twice("cpu", taeda.float64)
    assert all(close(got, want, 1e-3) for got, want in zip(*both, strict=True))
    q, k, v = (t.cuda().requires_grad_() for t in x)
    out = attend(q, k, v, dropout_p=0.5, enable_gqa=True)
    with pytest.raises(NotImplementedError, match="efficient_attention_backward"):
        taeda.autograd.grad(out.sum(), q, create_graph=True)


def chosen(x: list[Tensor], **options) -> SDPBackend:
    return SDPBackend(taeda._fused_sdp_choice(*x, **options))


def test_the_choice_is_pytorchs() -> None:
    x = [t.cuda() for t in inputs(2, 1, 6, 6, 8, 8)]
    small = [t.half() for t in x]
    seen = taeda.ones(6, 6, dtype=taeda.bool, device="cuda")
    assert chosen(x) is EFFICIENT and chosen(small) is FLASH
    assert chosen(small, attn_mask=seen) is EFFICIENT
    assert chosen(small, is_causal=True, dropout_p=0.1) is FLASH
    assert chosen([small[0][:, :, 1:], *small[1:]], is_causal=True) is EFFICIENT
    assert chosen([t.double() for t in x]) is MATH
    wide = [taeda.zeros(1, 1, 2, 264, device="cuda") for _ in range(3)]
    assert chosen(wide) is MATH
    with sdpa_kernel([EFFICIENT, MATH]):
        assert chosen(small) is EFFICIENT
    with sdpa_kernel(FLASH):
        with pytest.raises(RuntimeError, match="No available kernel.*float16"):
            attend(*x)
        with pytest.raises(RuntimeError, match="No available kernel.*no attn_mask"):
            attend(*small, attn_mask=seen)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        with pytest.raises(RuntimeError, match="No viable backend"):
            attend(*small)
    shared = [small[0], small[1][:, :1], small[2][:, :1]]
    assert chosen(shared, enable_gqa=True) is FLASH and chosen(shared) is MATH


def test_switches_of_the_backend() -> None:
    cuda = taeda.backends.cuda
    x = [t.half().cuda() for t in inputs(2, 1, 6, 6, 8, 8)]
    params = cuda.SDPAParams(*x, None, 0.0, False, False)
    assert cuda.is_flash_attention_available()
    assert cuda.can_use_flash_attention(params)
    assert cuda.can_use_efficient_attention(params)
    assert not cuda.can_use_cudnn_attention(params)
    wide = cuda.SDPAParams(*(t.float() for t in x), None, 0.0, False, False)
    assert not cuda.can_use_flash_attention(wide)
    with pytest.warns(UserWarning, match="float16 and bfloat16"):
        cuda.can_use_flash_attention(wide, debug=True)
    cuda.enable_flash_sdp(False)
    try:
        assert chosen(x) is EFFICIENT
        assert not cuda.can_use_flash_attention(params)
    finally:
        cuda.enable_flash_sdp(True)


def test_lower_right_causal_masks() -> None:
    x = inputs(2, 1, 5, 9, 8, 8)
    mask = bias.causal_lower_right(5, 9)
    want = attend(*(t.double() for t in x), mask)
    assert close(attend(*(t.cuda() for t in x), mask), want, 2e-5)


def test_layers_take_the_kernel() -> None:
    taeda.manual_seed(3)
    layer = taeda.nn.MultiheadAttention(16, 4, batch_first=True)
    x = taeda.randn(2, 9, 16)
    want = layer.double()(x.double(), x.double(), x.double(), need_weights=False)[0]
    layer, x = layer.float().cuda(), x.cuda()
    assert close(layer(x, x, x, need_weights=False)[0], want, 2e-5)


def test_transforms_and_compiled_programs() -> None:
    q, k, v = (t.cuda() for t in inputs(2, 1, 5, 7, 8, 8))
    want = attend(q, k[:, :1], v[:, :1], enable_gqa=True)
    mapped = taeda.vmap(lambda x: attend(x, k[0], v[0]))(q)
    expected = taeda.stack([attend(x, k[0], v[0]) for x in q])
    assert taeda.equal(mapped, expected)
    compiled = taeda.compile(lambda *x: attend(*x, enable_gqa=True) * 2)
    assert taeda.equal(compiled(q, k[:, :1], v[:, :1]), want * 2)


def test_what_is_counted_and_refused() -> None:
    q, k, v = (t.cuda().requires_grad_() for t in inputs(2, 1, 5, 7, 8, 8))
    with FlopCounterMode(display=False) as counter:
        attend(q, k, v).sum().backward()
    assert counter.get_total_flops() == 2 * 2 * 2 * 5 * 7 * (16 + 40)
    operator = taeda.ops.aten._scaled_dot_product_efficient_attention
    with pytest.raises(NotImplementedError, match="efficient_attention"):
        operator(q.cpu(), k.cpu(), v.cpu(), None, False)
    with pytest.raises(NotImplementedError, match="float32, float16 or bfloat16"):
        operator(q.double(), k.double(), v.double(), None, False)
