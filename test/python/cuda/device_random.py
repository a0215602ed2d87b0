"""Draws on a device: its generators, and the numbers that a seed gives.

The reference is written from the papers' formulas and cuRAND's documented order of
draws: a block of four words for each thread, Box and Muller's pairs.
"""

from __future__ import annotations

import math

import pytest
import taeda
from taeda import cuda
from taeda.nn import functional

Tensor = taeda.Tensor
MASK = (1 << 32) - 1
# Of the emulated device: 2 multiprocessors of 2048 threads each.
MOST_THREADS = 2 * 2048


def philox(seed: int, thread: int, block: int) -> list[int]:
    """Four words: Salmon et al., 2011."""
    keys = [seed & MASK, seed >> 32]
    c = [block & MASK, block >> 32, thread & MASK, thread >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ keys[0], b & MASK, a >> 32 ^ c[3] ^ keys[1], a & MASK]
        keys = [(keys[0] + 0x9E3779B9) & MASK, (keys[1] + 0xBB67AE85) & MASK]
    return c


def words(seed: int, count: int, each: int, block: int = 0) -> list[tuple[list, int]]:
    """For each element the words of its block, and its part of them."""
    threads = min(-(-count // 256) * 256, MOST_THREADS)
    found = []
    for i in range(count):
        turn = i // threads
        found.append((philox(seed, i % threads, block + turn // each), turn % each))
    return found


def unit(word: int) -> float:
    return word * 2**-32 + 2**-33


def close(got: Tensor, want: list[float], share: float = 2e-6) -> bool:
    want = taeda.tensor(want, dtype=taeda.float64)
    return taeda.allclose(got.cpu().double(), want, rtol=share, atol=share)


def test_uniform_numbers_are_those_of_the_scheme() -> None:
    count = 3 * MOST_THREADS + 5
    taeda.manual_seed(3)
    got = taeda.rand(count, device="cuda")
    want = [unit(w[part]) for w, part in words(3, count, 4)]
    assert close(got, want)
    # The next call goes on behind the words that the busiest thread had.
    again = taeda.rand(5, device="cuda")
    assert close(again, [unit(w[part]) for w, part in words(3, 5, 4, block=1)])


def test_numbers_that_a_gpu_gives_for_seed_0() -> None:
    taeda.manual_seed(0)
    assert close(taeda.rand(3, device="cuda"), [0.3990, 0.5167, 0.0249], 1e-4)
    taeda.manual_seed(0)
    normal = taeda.randn(2, 3, device="cuda").flatten()
    assert close(normal, [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797], 1e-4)


def test_normal_numbers_come_in_pairs() -> None:
    count = MOST_THREADS + 7
    taeda.manual_seed(11)
    got = taeda.randn(count, device="cuda")
    want = []
    for w, part in words(11, count, 4):
        size = math.sqrt(-2 * math.log(unit(w[part // 2 * 2])))
        angle = unit(w[part // 2 * 2 + 1]) * 2 * math.pi
        want.append(size * (math.cos(angle) if part % 2 else math.sin(angle)))
    assert close(got, want, 2e-5)


def test_double_numbers_take_two_words() -> None:
    taeda.manual_seed(5)
    got = taeda.rand(MOST_THREADS + 9, device="cuda", dtype=taeda.float64)
    want = []
    for w, part in words(5, MOST_THREADS + 9, 2):
        low, high = w[2 * part : 2 * part + 2]
        want.append((low ^ high << 21) * 2**-53 + 2**-54)
    assert close(got, want, 1e-15)


def test_whole_numbers() -> None:
    taeda.manual_seed(2)
    got = taeda.randint(3, 13, (300,), device="cuda")
    assert got.tolist() == [3 + w[part] % 10 for w, part in words(2, 300, 4)]
    wide = taeda.randint(0, 1 << 40, (9,), device="cuda")
    blocks = words(2, 9, 2, block=1)
    pairs = [(w[2 * part], w[2 * part + 1]) for w, part in blocks]
    assert wide.tolist() == [(a << 32 | b) % (1 << 40) for a, b in pairs]


def test_states_come_back() -> None:
    cuda.manual_seed_all(9)
    state = cuda.get_rng_state()
    assert state.dtype == taeda.uint8 and state.numel() == 16 and not state.is_cuda
    assert cuda.initial_seed() == 9
    first = taeda.rand(4, device="cuda")
    moved = cuda.get_rng_state()
    assert moved.tolist() != state.tolist()
    cuda.set_rng_state(state)
    assert taeda.equal(taeda.rand(4, device="cuda"), first)
    assert cuda.get_rng_state().tolist() == moved.tolist()
    assert len(cuda.get_rng_state_all()) == cuda.device_count() == 2
    cuda.set_rng_state_all([state, state])
    other = taeda.rand(4, device="cuda:1")
    assert taeda.equal(other.cpu(), first.cpu())
    with pytest.raises(RuntimeError, match="wrong size"):
        cuda.set_rng_state(state[:5])


def test_generators_of_their_own() -> None:
    taeda.manual_seed(4)
    before = cuda.get_rng_state().tolist()
    mine = taeda.Generator("cuda").manual_seed(21)
    assert mine.device.type == "cuda" and mine.initial_seed() == 21
    copy = mine.clone_state()
    first = taeda.rand(6, device="cuda", generator=mine)
    assert taeda.equal(taeda.rand(6, device="cuda", generator=copy), first)
    assert taeda.empty(6, device="cuda").uniform_(generator=mine).ne(first).any()
    assert cuda.get_rng_state().tolist() == before
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type"):
        taeda.rand(2, device="cuda", generator=taeda.Generator())
    with pytest.raises(RuntimeError, match="generator"):
        taeda.rand(2, generator=mine)


def test_the_cpu_draws_apart_from_devices() -> None:
    taeda.manual_seed(6)
    first = taeda.rand(3)
    taeda.manual_seed(6)
    taeda.rand(100, device="cuda")
    assert taeda.equal(taeda.rand(3), first)
    with taeda.random.fork_rng():
        inside = taeda.rand(3, device="cuda")
    assert taeda.equal(taeda.rand(3, device="cuda"), inside)


def test_draws_follow_the_seed() -> None:
    def draws() -> list[Tensor]:
        taeda.manual_seed(7)
        there = taeda.empty(1000, device="cuda")
        return [
            taeda.rand(1000, device="cuda"),
            taeda.randn_like(there),
            taeda.randint(3, 9, (1000,), device="cuda"),
            there.uniform_(-1, 1).clone(),
            functional.dropout(taeda.ones(1000, device="cuda"), 0.25),
            taeda.randperm(50, device="cuda"),
        ]

    first, second = draws(), draws()
    assert all(taeda.equal(a, b) for a, b in zip(first, second, strict=True))
    uniform, normal, integers, wide, kept, order = (t.cpu() for t in first)
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
    assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
    assert set(integers.tolist()) == {3, 4, 5, 6, 7, 8}
    assert -1 <= wide.min() < -0.9 and 0.9 < wide.max() < 1
    assert set(kept.tolist()) == {0.0, kept.max().item()}
    assert abs((kept > 0).float().mean() - 0.75) < 0.07
    assert sorted(order.tolist()) == list(range(50))


def test_distributions_have_their_moments() -> None:
    count = 4000
    for first, second in ((0.5, 3.0), (12.0, 400.0)):
        rates = taeda.tensor([first, second], device="cuda").repeat(count, 1)
        drawn = taeda.poisson(rates).cpu()
        assert (drawn == drawn.round()).all() and (drawn >= 0).all()
        for column, rate in zip(drawn.T, (first, second), strict=True):
            assert abs(column.mean() - rate) < 5 * math.sqrt(rate / count)
            assert abs(column.var() / rate - 1) < 0.2
    trials = taeda.tensor([10.0, 10.0, 300.0], device="cuda").repeat(count, 1)
    chances = taeda.tensor([0.3, 0.9, 0.6], device="cuda").expand(count, 3)
    drawn = taeda.binomial(trials, chances).cpu()
    assert (drawn >= 0).all() and (drawn <= trials.cpu()).all()
    for column, n, p in zip(drawn.T, (10, 10, 300), (0.3, 0.9, 0.6), strict=True):
        spread = n * p * (1 - p)
        assert abs(column.mean() - n * p) < 5 * math.sqrt(spread / count)
        assert abs(column.var() / spread - 1) < 0.2
    shapes = taeda.tensor([0.4, 5.0], device="cuda").repeat(count, 1)
    drawn = taeda._standard_gamma(shapes).cpu()
    for column, shape in zip(drawn.T, (0.4, 5.0), strict=True):
        assert abs(column.mean() - shape) < 5 * math.sqrt(shape / count)
        assert abs(column.var() / shape - 1) < 0.3
    weights = taeda.tensor([1.0, 2.0, 5.0], device="cuda").expand(count, 3)
    drawn = taeda._sample_dirichlet(weights).cpu()
    assert taeda.allclose(drawn.sum(1), taeda.ones(count))
    assert taeda.allclose(drawn.mean(0), taeda.tensor([1, 2, 5]) / 8, atol=0.02)


def test_distributions_follow_the_seed() -> None:
    rates = taeda.full((50,), 7.0, device="cuda")
    cuda.manual_seed(3)
    first, second = taeda.poisson(rates), taeda.poisson(rates)
    cuda.manual_seed(3)
    assert taeda.equal(taeda.poisson(rates), first)
    assert not taeda.equal(first, second)
    assert taeda.poisson(taeda.tensor([-1.0], device="cuda")).isnan().all()
