"""Attention over sequences of several lengths: the CPU's, one by one, in double."""

from __future__ import annotations

import pytest
import taeda
from taeda.nn.attention import SDPBackend, bias, sdpa_kernel
from taeda.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from taeda.nn.functional import scaled_dot_product_attention as attend
from taeda.utils.flop_counter import FlopCounterMode

Tensor = taeda.Tensor

TOLERANCE = {taeda.float32: 2e-5, taeda.float16: 4e-3, taeda.bfloat16: 3e-2}
DTYPES = list(TOLERANCE)
LENGTHS, KEYS = [3, 0, 70, 1, 21], [5, 2, 70, 130, 0]


def rows(lengths: list[int], heads: int, width: int) -> Tensor:
    return taeda.randn(sum(lengths), heads, width)


def starts(lengths: list[int]) -> Tensor:
    found = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    return taeda.tensor(found, dtype=taeda.int32)


def close(got: Tensor, want: Tensor, bound: float) -> bool:
    got = got.detach().cpu().double()
    return taeda.allclose(got, want.detach().double(), rtol=bound, atol=bound)


def both(dtype: taeda.dtype, tensors: list[Tensor], compute) -> None:
    """Results and gradients of the device, and of the CPU in double."""
    found = []
    for device, kind in (("cuda", dtype), ("cpu", taeda.float64)):
        given = [t.to(dtype).to(device, kind).requires_grad_() for t in tensors]
        results = compute(device, *given)
        out = results[0] if isinstance(results, tuple) else results
        weights = taeda.linspace(-1, 1, out.numel()).reshape(out.shape).to(dtype)
        (out * weights.to(device, kind)).sum().backward()
        sums = list(results[1:]) if isinstance(results, tuple) else []
        found.append([out, *sums, *(t.grad for t in given)])
    for got, want in zip(*found, strict=True):
        assert got.is_cuda and got.shape == want.shape
        assert close(got, want.nan_to_num(0), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (9, 0), (4, 3), (0, -1)])
def test_lengths_and_windows(dtype: taeda.dtype, window: tuple) -> None:
    taeda.manual_seed(3)
    tensors = [rows(LENGTHS, 4, 16), rows(KEYS, 2, 16), rows(KEYS, 2, 16)]
    places, key_places = starts(LENGTHS), starts(KEYS)

    def compute(device, q, k, v):
        options = {"window_size": window, "enable_gqa": True}
        to = places.to(device), key_places.to(device)
        return varlen_attn(q, k, v, *to, 70, 130, scale=0.3, **options)

    both(dtype, tensors, compute)


@pytest.mark.parametrize("width", [40, 128, 256])
def test_widths(width: int) -> None:
    tensors = [rows([19, 3], 1, width) for _ in range(3)]
    places = starts([19, 3])

    def compute(device, q, k, v):
        to = places.to(device)
        aux = {"return_aux": AuxRequest(True), "window_size": (-1, 0)}
        return varlen_attn(q, k, v, to, None, 19, 19, **aux)

    both(taeda.float16, tensors, compute)


def test_one_launch_has_all_sequences() -> None:
    q = rows([5, 9, 1], 2, 8).cuda()
    places = starts([5, 9, 1]).cuda()
    varlen_attn(q, q, q, places, places, 9, 9)
    with taeda.profiler.profile() as profile:
        varlen_attn(q, q, q, places, places, 9, 9)
    names = [e.name for e in profile.events()]
    assert sum("flash_attention_forward" in name for name in names) == 1
    assert not any("cat" in name for name in names)


def test_nested_tensors() -> None:
    lengths = [7, 33, 2]
    parts = [[taeda.randn(n, 2, 16) for n in lengths] for _ in range(3)]

    def compute(device, *entries):
        nested = []
        for i in range(3):
            own = list(entries[3 * i : 3 * i + 3])
            nested.append(taeda.nested.as_nested_tensor(own, layout=taeda.jagged))
        # One raggedness for all three.
        q = nested[0]
        k, v = (q._like(t.values()) for t in nested[1:])
        out = attend(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)
        return out.transpose(1, 2).values()

    both(taeda.float32, [t for three in parts for t in three], compute)


def test_nested_tensors_by_other_ways() -> None:
    """What the kernel lacks is computed one by one, to the same values."""
    own = [taeda.randn(n, 2, 8, device="cuda") for n in (4, 9)]
    nt = taeda.nested.as_nested_tensor(own, layout=taeda.jagged).transpose(1, 2)
    want = attend(nt, nt, nt).values()
    with sdpa_kernel(SDPBackend.MATH):
        assert taeda.allclose(attend(nt, nt, nt).values(), want, atol=1e-5)
    wide = nt.double()
    assert taeda.allclose(attend(wide, wide, wide).values().float(), want, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_causal_masks_at_the_lower_right(dtype: taeda.dtype) -> None:
    for l, s in ((5, 70), (40, 41), (1, 20)):
        sizes = [(2, 4, l, 16), (2, 2, s, 16), (2, 2, s, 16)]
        tensors = [taeda.randn(size) for size in sizes]
        mask = bias.causal_lower_right(l, s)
        both(
            dtype,
            tensors,
            lambda _, q, k, v, m=mask: attend(q, k, v, m, enable_gqa=True),
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_few_queries_and_many_keys(dtype: taeda.dtype) -> None:
    """Keys are split over blocks; a head's queries are rows of one tile."""
    for heads, shared, l in ((8, 4, 1), (2, 1, 3), (3, 3, 1)):
        own = heads // shared
        sizes = [(2, heads, l, 24), (2, own, 700, 24), (2, own, 700, 8)]
        tensors = [taeda.randn(size) for size in sizes]
        both(dtype, tensors, lambda _, *x: attend(*x, enable_gqa=True))
        mask = taeda.randn(heads, l, 700).to(dtype)

        def masked(device, q, k, v, mask=mask):
            given = mask.to(device, q.dtype)
            return attend(q, k, v, given, enable_gqa=True)

        both(dtype, tensors, masked)


def test_shares_add_up_to_the_same_bits() -> None:
    taeda.manual_seed(0)
    q, k = taeda.randn(2, 4, 1, 32).cuda(), taeda.randn(2, 4, 900, 32).cuda()
    results = [attend(q, k, k) for _ in range(3)]
    assert all(taeda.equal(results[0], other) for other in results)
    flat = q.transpose(1, 2).flatten(0, 1), k.transpose(1, 2).flatten(0, 1)
    places, ends = starts([1, 1]).cuda(), starts([900, 900]).cuda()
    one, *others = (
        varlen_attn(flat[0], flat[1], flat[1], places, ends, 1, 900, num_splits=n)
        for n in (1, 2, 5, 64)
    )
    assert all(taeda.allclose(one, other, atol=1e-6) for other in others)
    # Of one share, whatever else is in the batch.
    alone = varlen_attn(
        flat[0][:1], *[flat[1][:900]] * 2, places[:2], ends[:2], 1, 900, num_splits=1
    )
    assert taeda.equal(alone, one[:1])


@pytest.mark.parametrize("keys", [[40, 3, 0, 64], [700, 20, 5, 300]])
def test_one_query_of_each_sequence(keys: list[int]) -> None:
    """Heads are rows of a tile, log sums are turned; some have no query."""
    taeda.manual_seed(4)
    lengths = [1, 1, 1, 0]
    tensors = [rows(lengths, 6, 24), rows(keys, 2, 24), rows(keys, 2, 24)]
    places, key_places = starts(lengths), starts(keys)

    def compute(device, q, k, v, window=(-1, 0)):
        to = places.to(device), key_places.to(device)
        options = {"enable_gqa": True, "return_aux": AuxRequest(True)}
        found = varlen_attn(q, k, v, *to, 1, max(keys), window_size=window, **options)
        return found[0], found[1].nan_to_num(0, 0, 0)

    both(taeda.float32, tensors, compute)
    both(taeda.float16, tensors, lambda *x: compute(*x, window=(9, 0)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lengths", [[1, 3, 2], [1, 1, 1]])
def test_pages_of_keys(dtype: taeda.dtype, lengths: list[int]) -> None:
    taeda.manual_seed(1)
    pool = [taeda.randn(11, 16, 2, 32).to(dtype) for _ in range(2)]
    used = taeda.tensor([40, 3, 64], dtype=taeda.int32)
    table = taeda.tensor([[7, 2, 0, 5], [9, 0, 0, 0], [1, 10, 3, 4]])
    q = rows(lengths, 4, 32).to(dtype)
    places = starts(lengths)
    options = {"enable_gqa": True, "window_size": (-1, 0)}

    def run(device, kind, **others):
        given = [t.to(device, kind) for t in (q, *pool)]
        to = [t.to(device) for t in (places, used, table)]
        return varlen_attn(
            *given,
            to[0],
            None,
            max(lengths),
            64,
            seqused_k=to[1],
            block_table=to[2],
            **options,
            **others,
        )

    want = run("cpu", taeda.float64)
    for splits in (None, 1, 3):
        got = run("cuda", dtype, num_splits=splits)
        assert close(got, want, TOLERANCE[dtype])


def test_a_cache_of_keys() -> None:
    """One query beside a cache of which the first keys count."""
    q, k = taeda.randn(3, 1, 4, 16), taeda.randn(3, 600, 2, 16)
    used = taeda.tensor([600, 1, 311], dtype=taeda.int32)
    found = taeda.ops.aten._flash_attention_forward(
        *(t.cuda() for t in (q, k, k)),
        *(None, None, 1, 600, 0.0, True, False),
        seqused_k=used.cuda(),
    )[0]
    for i, n in enumerate(used.tolist()):
        one, keys = q[i : i + 1].transpose(1, 2), k[i : i + 1, :n].transpose(1, 2)
        want = attend(one.double(), *[keys.double()] * 2, enable_gqa=True)
        assert close(found[i : i + 1].transpose(1, 2), want, 2e-5)


def test_dropout_is_the_same_in_both_directions() -> None:
    """Of values that are unit vectors the result is the weights."""
    lengths, p = [6, 8], 0.4
    q = taeda.randn(14, 2, 8, device="cuda", requires_grad=True)
    k = taeda.randn(14, 2, 8, device="cuda")
    v = taeda.cat([taeda.eye(n, 8) for n in lengths]).unsqueeze(1).expand(14, 2, 8)
    v = v.cuda().contiguous().requires_grad_()
    places = starts(lengths).cuda()
    out = taeda.ops.aten._flash_attention_forward(
        q, k, v, places, places, 8, 8, p, False, False
    )[0]
    full = varlen_attn(q, k, v, places, places, 8, 8)
    kept = out.detach() != 0
    seen = full.detach() != 0
    assert 0 < kept.sum() < seen.sum()
    want = taeda.where(kept, full / (1 - p), 0.0)
    assert taeda.allclose(out, want, atol=1e-6)
    grad = taeda.randn_like(out)
    got = taeda.autograd.grad(out, (q, v), grad)[0]
    # The gradient of the weights goes through those that were kept.
    expected = taeda.autograd.grad(full, q, taeda.where(kept, grad / (1 - p), 0.0))[0]
    assert taeda.allclose(got, expected, atol=1e-5)


def test_autocast() -> None:
    """As in `scaled_dot_product_attention` of dense tensors."""
    x = [taeda.randn(2, 2, n, 8, device="cuda") for n in (3, 7, 7)]
    entries = [taeda.randn(n, 2, 8, device="cuda") for n in (4, 9)]
    nt = taeda.nested.as_nested_tensor(entries, layout=taeda.jagged).transpose(1, 2)
    for kind in (taeda.float16, taeda.bfloat16):
        with taeda.autocast("cuda", dtype=kind):
            assert attend(*x).dtype is kind
            assert attend(*x, bias.causal_lower_right(3, 7)).dtype is kind
            assert attend(nt, nt, nt).dtype is kind


def test_work_is_counted() -> None:
    q = rows([2, 3], 4, 8).cuda().requires_grad_()
    k = rows([5, 1], 2, 8).cuda()
    places, ends = starts([2, 3]).cuda(), starts([5, 1]).cuda()
    with FlopCounterMode(display=False) as counter:
        varlen_attn(q, k, k, places, ends, 3, 5, enable_gqa=True).sum().backward()
    products = 4 * (2 * 5 + 3 * 1)
    assert counter.get_total_flops() == 2 * products * 8 * (2 + 5)
    with FlopCounterMode(display=False) as counter:
        mask = bias.causal_lower_right(3, 7)
        x = [taeda.randn(2, 2, n, 8, device="cuda") for n in (3, 7, 7)]
        attend(*x, mask)
    assert counter.get_total_flops() == 2 * 2 * 2 * 3 * 7 * 16


def test_what_is_written_and_refused() -> None:
    q = rows([2, 3], 4, 8).cuda()
    places = starts([2, 3]).cuda()
    out = taeda.empty_like(q)
    assert varlen_attn_out(out, q, q, q, places, places, 3, 3) is out
    assert taeda.equal(out, varlen_attn(q, q, q, places, places, 3, 3))
    with pytest.raises(ValueError, match="same number of heads"):
        varlen_attn(q, q[:, :2], q[:, :2], places, places, 3, 3)
    with pytest.raises(ValueError, match="multiple of kv heads"):
        varlen_attn(q, q[:, :3], q[:, :3], places, places, 3, 3, enable_gqa=True)
    with pytest.raises(ValueError, match="needs seqused_k"):
        varlen_attn(q, q, q, places, None, 3, 3, block_table=places[None])
    with pytest.raises(RuntimeError, match="inference-only"):
        used = places.diff().int()
        wanted = q.clone().requires_grad_()
        varlen_attn(wanted, q, q, places, None, 3, 3, seqused_k=used)
    operator = taeda.ops.aten._flash_attention_forward
    common = (3, 3, 0.0, False, False)
    with pytest.raises(RuntimeError, match="expected cum_seq_q to be contiguous"):
        operator(q, q, q, places.long(), places.long(), *common)
    with pytest.raises(RuntimeError, match="cum_seq_k of 3 numbers"):
        operator(q, q, q, places, places[:2], *common)
    with pytest.raises(RuntimeError, match="or neither"):
        operator(q, q, q, places, None, *common)
    with pytest.raises(NotImplementedError, match="alibi_slopes"):
        operator(q, q, q, places, places, *common, alibi_slopes=q[0, :, 0])
    with pytest.raises(NotImplementedError, match="flash_attention_forward"):
        operator(*[q.cpu()] * 3, *[places.cpu()] * 2, *common)
