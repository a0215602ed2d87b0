"""Every distribution against PyTorch's CPU: values and the generator's place.

PyTorch draws bernoulli_(number) and exponential_ through MKL on Intel processors,
from another stream. What they draw elsewhere is made here from calls without MKL.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import taeda
import torch

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
ALL = [*FLOATING, *INTEGERS, torch.bool]
# Both sides of the groups of 16, of the chunks of 512 and of a block of 624.
SIZES = [0, 1, 2, 15, 16, 17, 31, 40, 511, 512, 513, 624, 625, 1250, 5000]
SEEDS = [0, 2**40 + 3]


def bernoulli(size: int, p: float, dtype=torch.float32) -> torch.Tensor:
    """bernoulli_(p): with a tensor of doubles as `p`, ATen draws alike without MKL."""
    each = torch.full((size,), p, dtype=torch.float64)
    return torch.empty(size, dtype=dtype).bernoulli_(each)


def exponential(size: int, rate: float, dtype=torch.float32) -> torch.Tensor:
    """exponential_(rate): the formula of ATen's DistributionsHelper.h in double."""
    uniform = torch.empty(size, dtype=torch.float64).uniform_()
    log = torch.tensor([math.log1p(-u) for u in uniform], dtype=torch.float64)
    return (-1 / rate * log).to(dtype)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def torch_state() -> bytes:
    return bytes(torch.get_rng_state().numpy())


def start(generator, seed: int, position: int) -> None:
    """Both generators at the same place, with a cached normal for odd ones."""
    generator.seed(seed)
    torch.manual_seed(seed)
    for _ in range(position):
        torch.rand(1)
        generator.random()
    if position % 2:
        torch.randn(1)
        generator.call("normal_float32", torch.empty(1), 1, 1, 0.0, 1.0)


def ulps(got: torch.Tensor, want: torch.Tensor, least: float = 0.0) -> float:
    """The largest distance in units of the last place of `want`, or of `least`."""
    if got.numel() == 0:
        return 0.0
    bits = {2: 10, 4: 23, 8: 52}[want.element_size()]
    bits = 7 if want.dtype == torch.bfloat16 else bits
    same = (got == want) | (got.isnan() & want.isnan())
    exact, size = want.double(), want.double().abs().clamp(min=least)
    unit = torch.ldexp(torch.ones_like(exact), torch.frexp(size)[1] - 1 - bits)
    return torch.where(same, 0.0, (got.double() - exact).abs() / unit).max().item()


def check(generator, got: torch.Tensor, want: torch.Tensor, most: float = 0) -> None:
    assert generator.state() == torch_state(), "the streams are at different places"
    if most == 0:
        assert torch.equal(got, want)
    else:
        worst = ulps(got, want)
        assert worst <= most, f"{worst} ulp"


def fill(generator, function: str, dtype, size: int, *parameters) -> torch.Tensor:
    got = torch.empty(size, dtype=dtype)
    generator.call(f"{function}_{name_of(dtype)}", got, size, 1, *parameters)
    return got


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.1, 0.7), (1.0, 1.0000004), (3, 3)])
def test_uniform_gives_torch_bits(generator, dtype, bounds):
    low, high = map(float, bounds)
    for size in SIZES:
        for seed in SEEDS:
            start(generator, seed, size % 7)
            want = torch.empty(size, dtype=dtype).uniform_(low, high)
            check(generator, fill(generator, "uniform", dtype, size, low, high), want)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0, 3.0), (-0.3, 0.01)])
def test_normal_is_within_4_ulp(generator, dtype, bounds):
    mean, std = bounds
    for size in [*SIZES, 20000]:
        for seed in SEEDS:
            start(generator, seed, size % 7)
            want = torch.empty(size, dtype=dtype).normal_(mean, std)
            got = fill(generator, "normal", dtype, size, mean, std)
            assert generator.state() == torch_state()
            # Where mean and value cancel, only the value's own error counts.
            assert ulps(got, want, least=abs(mean)) <= 4


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("function", ["uniform", "normal", "log_normal"])
def test_strided_tensors_draw_one_at_a_time(generator, dtype, function):
    low, high = (0.0, 1.0) if function != "log_normal" else (1.0, 2.0)
    for size in SIZES:
        start(generator, 3, size % 5)
        want = torch.empty(size, 3, dtype=dtype)[:, 1]
        getattr(want, f"{function}_")(low, high)
        got = torch.empty(size, 3, dtype=dtype)[:, 1]
        generator.call(f"{function}_{name_of(dtype)}", got, size, 3, low, high)
        check(generator, got, want, most=1)


@pytest.mark.parametrize("dtype", ALL)
def test_random_without_bounds(generator, dtype):
    for size in SIZES:
        start(generator, 1, size % 7)
        want = torch.empty(size, dtype=dtype).random_()
        check(generator, fill(generator, "random", dtype, size), want)


def test_random_of_all_64_bits(generator):
    start(generator, 1, 2)
    want = torch.empty(1000, dtype=torch.int64).random_(-(2**63), None)
    got = fill(generator, "any_bits", torch.int64, 1000)
    check(generator, got, want)


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("dtype", ALL)
def test_random_from_a_range(generator, dtype):
    ranges = [(0, 1), (0, 2), (0, 100), (-5, 17), (10, 2**24), (0, 2**28 - 1)]
    ranges += [
        (0, 2**28),
        (2**25 + 1, 2**26),
        (-(2**27) - 1, 5),
        (7, 2**31),
        (-(2**33), 2**35),
        (0, 2**53),
    ]
    tried = 0
    for low, high in ranges:
        try:
            start(generator, 0, 3)
            want = torch.empty(1300, dtype=dtype).random_(low, high)
        except RuntimeError:
            continue  # the bounds do not fit the dtype
        got = fill(generator, "range", dtype, 1300, low, high)
        check(generator, got, want)
        tried += 1
    assert tried >= 2


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32])
def test_permutation(generator, dtype):
    for size in [*SIZES, 100000]:
        start(generator, 5, size % 3)
        want = torch.randperm(size, dtype=dtype)
        check(generator, fill(generator, "permutation", dtype, size), want)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
def test_bernoulli_with_one_probability(generator, dtype, p):
    for size in SIZES:
        start(generator, 2, size % 3)
        want = bernoulli(size, p, dtype)
        check(generator, fill(generator, "bernoulli", dtype, size, p), want)


def test_dropout_mask_is_bernoulli_of_the_kept_share():
    torch.manual_seed(4)
    taeda.manual_seed(4)
    got = taeda.nn.functional.dropout(taeda.ones(1000), 0.3) != 0
    assert torch.equal(torch.from_numpy(got.numpy()), bernoulli(1000, 1 - 0.3) != 0)


@pytest.mark.parametrize("dtype", FLOATING)
def test_bernoulli_with_a_probability_each(generator, dtype):
    for size in SIZES:
        p = torch.rand(size, dtype=torch.float64).to(dtype)
        start(generator, 2, size % 3)
        want = torch.bernoulli(p)
        got = torch.empty_like(p)
        generator.call(f"bernoulli_each_{name_of(dtype)}", got, p, size)
        check(generator, got, want)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("rate", [1.0, 0.3, 7.5])
def test_exponential(generator, dtype, rate):
    for size in SIZES:
        start(generator, 2, size % 3)
        want = exponential(size, rate, dtype)
        got = fill(generator, "exponential", dtype, size, rate)
        check(generator, got, want, most=1)


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_geometric(generator, dtype, p):
    start(generator, 2, 3)
    want = torch.empty(3000, dtype=dtype).geometric_(p)
    check(generator, fill(generator, "geometric", dtype, 3000, p), want)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.3, 5.0)])
def test_cauchy(generator, dtype, bounds):
    start(generator, 2, 3)
    want = torch.empty(3000, dtype=dtype).cauchy_(*bounds)
    got = fill(generator, "cauchy", dtype, 3000, *bounds)
    assert generator.state() == torch_state()
    assert ulps(got, want, least=bounds[0]) <= 1


@pytest.mark.parametrize("dtype", FLOATING)
def test_log_normal(generator, dtype):
    for size in SIZES:
        start(generator, 9, size % 3)
        want = torch.empty(size, dtype=dtype).log_normal_(0.5, 1.5)
        got = fill(generator, "log_normal", dtype, size, 0.5, 1.5)
        check(generator, got, want, most=1 if dtype != torch.float64 else 4)


@pytest.mark.parametrize("dtype", FLOATING)
def test_poisson(generator, dtype):
    rate = torch.tensor([0, 0.1, 1, 5, 9.9, 10, 11, 50, 1000], dtype=dtype)
    rate = rate.repeat(300)
    start(generator, 2, 3)
    want = torch.poisson(rate)
    got = torch.empty_like(rate)
    generator.call(f"poisson_{name_of(dtype)}", got, rate, rate.numel())
    check(generator, got, want)


@pytest.mark.parametrize("dtype", FLOATING[:2])
def test_binomial(generator, dtype):
    count = torch.tensor([0, 1, 5, 40, 100, 200], dtype=dtype)
    p = torch.tensor([0, 0.01, 0.2, 0.5, 0.7, 0.95, 1], dtype=dtype)
    count, p = (
        t.reshape(-1).repeat(40) for t in torch.meshgrid(count, p, indexing="ij")
    )
    start(generator, 2, 3)
    want = torch.binomial(count, p)
    got = torch.empty_like(count)
    generator.call(f"binomial_{name_of(dtype)}", got, count, p, p.numel())
    check(generator, got, want)


@pytest.mark.parametrize("dtype", FLOATING[:2])
def test_standard_gamma(generator, dtype):
    alpha = torch.tensor([0, 0.05, 0.5, 1, 2, 30], dtype=dtype).repeat(300)
    start(generator, 2, 3)
    want = torch._standard_gamma(alpha)
    got = torch.empty_like(alpha)
    generator.call(f"gamma_{name_of(dtype)}", got, alpha, alpha.numel())
    check(generator, got, want, most=1)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("categories", [1, 2, 7, 300])
def test_multinomial_with_replacement(generator, dtype, categories):
    weights = torch.rand(categories, dtype=torch.float64).to(dtype)
    weights[categories // 2 :: 3] = 0
    weights[0] = 0.5
    start(generator, 2, 3)
    want = torch.multinomial(weights, 1000, replacement=True)
    got = torch.empty(1000, dtype=torch.int64)
    generator.call(f"multinomial_{name_of(dtype)}", got, weights, categories, 1000)
    check(generator, got, want)


def test_multinomial_without_replacement_is_a_race():
    weights = torch.rand(50)
    torch.manual_seed(2)
    taeda.manual_seed(2)
    want = (weights / exponential(50, 1.0)).topk(10).indices
    got = taeda.multinomial(taeda.from_numpy(weights.numpy()), 10)
    assert got.tolist() == want.tolist()


def test_streams_interleave(generator):
    """A program of many calls stays in step throughout."""
    start(generator, 11, 0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(0, 40))
        dtype = FLOATING[rng.integers(0, 4)]
        kind = ["uniform", "normal", "log_normal"][rng.integers(0, 3)]
        want = torch.empty(size, dtype=dtype)
        getattr(want, f"{kind}_")(0.25, 1.5)
        got = fill(generator, kind, dtype, size, 0.25, 1.5)
        assert generator.state() == torch_state()
        if kind == "uniform":
            assert torch.equal(got, want)


UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("bounds", [(10,), (3, 10), (0, 60000), (7, None)])
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_integers_without_sign(dtype, bounds):
    if dtype == torch.uint64 and bounds[-1] is None:
        return  # an error of PyTorch's; what is drawn stands below
    torch.manual_seed(5)
    taeda.manual_seed(5)
    want = torch.empty(700, dtype=dtype).random_(*bounds)
    got = taeda.empty(700, dtype=getattr(taeda, str(dtype)[6:])).random_(*bounds)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_all_values_without_sign_are_drawn(bits):
    drawn = taeda.empty(4000, dtype=getattr(taeda, f"uint{bits}")).random_().tolist()
    assert min(drawn) < 2 ** (bits - 8) and max(drawn) > 2**bits - 2 ** (bits - 8)
    with pytest.raises(RuntimeError, match="from is out of bounds"):
        taeda.empty(2, dtype=taeda.uint16).random_(-5, 5)
