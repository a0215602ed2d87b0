"""Rounding as quantized tensors do, and linear layers of packed weights: as PyTorch."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS = range(12)


def draw(seed: int, *shape) -> numpy.ndarray:
    rng = numpy.random.default_rng(seed)
    return (rng.standard_normal(shape) * 3).astype("float32")


def same(call, *arrays, tolerance: float = 0.0) -> None:
    """The call gives both libraries the same numbers, dtypes and sizes."""
    results = []
    for library in (taeda, torch):
        made = call(library, *(library.from_numpy(a.copy()) for a in arrays))
        results.append([numpy.asarray(part) for part in made])
    for got, want in zip(*results, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        numpy.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_scale(seed) -> None:
    scale, zero = 0.02 + seed / 40, seed - 6

    def call(library, x):
        x.requires_grad_()
        y = library.fake_quantize_per_tensor_affine(x, scale, zero, -10, 10)
        y.sum().backward()
        parts = library.tensor([scale]), library.tensor([zero], dtype=library.int32)
        again = library.fake_quantize_per_tensor_affine(x, *parts, -10, 10)
        return y.detach(), x.grad, again.detach()

    same(call, draw(seed, 4, 5))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_scale_for_each_place(seed) -> None:
    rng = numpy.random.default_rng(seed)
    scale = rng.uniform(0.01, 0.5, 5).astype("float32")
    zero = rng.integers(-10, 10, 5).astype("int32")

    def call(library, x, scale, zero):
        x.requires_grad_()
        y = library.fake_quantize_per_channel_affine(x, scale, zero, 1, -10, 10)
        y.sum().backward()
        return y.detach(), x.grad

    same(call, draw(seed, 4, 5, 2), scale, zero)


@pytest.mark.parametrize("library", [taeda, torch])
def test_refusals(library) -> None:
    x, one = library.ones(2, 2), library.ones(2)
    zero = library.zeros(2, dtype=library.int32)
    per_tensor = library.fake_quantize_per_tensor_affine
    per_channel = library.fake_quantize_per_channel_affine
    with pytest.raises(RuntimeError, match="should be less than or"):
        per_tensor(x, 0.1, 0, 3, 2)
    with pytest.raises(RuntimeError, match="between `quant_min`"):
        per_tensor(x, 0.1, 9, 0, 2)
    with pytest.raises(RuntimeError, match="Zero-point must be"):
        per_channel(x, one, zero.long(), 0, 0, 2)
    with pytest.raises(RuntimeError, match="dimensions"):
        per_channel(x, one[:1], zero, 0, 0, 2)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bounds", [(0, 255), (-128, 127)])
@pytest.mark.parametrize("rows", [False, True])
def test_observed_ranges(symmetric, bounds, rows) -> None:
    count = 4 if rows else 1
    if rows and bounds[0] == 0:
        bounds = (0, 127)

    def call(library, x):
        on = library.tensor([1])
        state = [
            library.full((count,), library.inf),
            library.full((count,), -library.inf),
            library.ones(count),
            library.zeros(count, dtype=library.int32),
        ]
        options = (0.1, *bounds, 0, rows, symmetric)
        observe = library.fused_moving_avg_obs_fake_quant
        results = [observe(x * k, on, on, *state, *options) for k in (1, 2)]
        off = library.tensor([0])
        return *results, observe(x, off, off, *state, *options), *state

    for seed in SEEDS:
        same(call, draw(seed, 4, 5), tolerance=1e-6)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_range_that_loses_least(bits) -> None:
    for seed in SEEDS:
        same(
            lambda t, x: t.choose_qparams_optimized(x, 20, 200, 0.16, bits),
            draw(seed, 20),
            tolerance=1e-5,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_packed_weights(seed) -> None:
    def call(t, weight, x, bias):
        q, sums, scale, zero = t.fbgemm_linear_quantize_weight(weight)
        packed = t.fbgemm_pack_quantized_matrix(q)
        half = t.fbgemm_pack_gemm_matrix_fp16(weight * (1e5 if seed == 0 else 1))
        facts = q, packed, sums, scale, zero, bias
        return (
            q,
            sums,
            t.tensor([scale, zero]),
            t.fbgemm_linear_int8_weight(x, *facts),
            t.fbgemm_linear_int8_weight_fp32_activation(x, *facts),
            t.fbgemm_linear_fp16_weight(x, half, bias),
            t.fbgemm_linear_fp16_weight_fp32_activation(x, half, None),
        )

    arrays = draw(seed, 3, 70), draw(seed + 50, 2, 4, 70), draw(seed + 99, 3)
    results = []
    for library in (taeda, torch):
        made = call(library, *(library.from_numpy(a.copy()) for a in arrays))
        results.append([part.numpy() for part in made])
    for got, want in zip(*results, strict=True):
        assert got.dtype == want.dtype
        numpy.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-4)


def test_packed_weights_refuse() -> None:
    with pytest.raises(RuntimeError, match="expected a packed weight"):
        taeda.fbgemm_linear_fp16_weight(taeda.ones(1, 2), taeda.ones(2), taeda.ones(1))
    for library in (taeda, torch):
        with pytest.raises(RuntimeError, match="expected scalar type Float"):
            library.fbgemm_pack_gemm_matrix_fp16(library.ones(2, 2).half())


def test_schemes_are_constants() -> None:
    import copy
    import pickle

    kinds = [n for n in dir(torch) if isinstance(getattr(torch, n), torch.qscheme)]
    assert len(kinds) == 5
    for name in kinds:
        ours, real = getattr(taeda, name), getattr(torch, name)
        assert repr(ours) == repr(real).replace("torch", "taeda")
        assert isinstance(ours, taeda.qscheme) and copy.deepcopy(ours) is ours
        assert pickle.loads(pickle.dumps(ours)) is ours
    for library in (taeda, torch):
        with pytest.raises(TypeError, match="cannot create"):
            library.qscheme()
