"""Generator state, seeds and engines against PyTorch and published vectors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from tolerance import rounding


def words(library, function: str, *arguments, count: int = 4) -> list[int]:
    out = (ctypes.c_uint32 * count)()
    getattr(library, function)(*arguments, out, ctypes.c_int64(count))
    return list(out)


# The known answers of Random123's kat_vectors (philox4x32, 10 rounds).
PHILOX = [
    ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (
        [0xFFFFFFFF] * 4,
        0xFFFFFFFFFFFFFFFF,
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
    ),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        0x299F31D0A4093822,
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "want"), PHILOX)
def test_philox_known_answers(random_library, counter, key, want):
    counter = (ctypes.c_uint32 * 4)(*counter)
    got = words(random_library, "philox", counter, ctypes.c_uint64(key))
    assert got == want


def test_philox_stream_walks_the_counter(random_library):
    seed, stream = ctypes.c_uint64(7), ctypes.c_uint64(2**33 + 1)
    got = words(random_library, "philox_stream", seed, stream, count=10)
    blocks = []
    for block in range(3):
        counter = (ctypes.c_uint32 * 4)(block, 0, 1, 2)
        blocks += words(random_library, "philox", counter, seed)
    assert got == blocks[:10]
    assert len(set(got)) == 10


@pytest.mark.parametrize("seed", [0, 1, 5489, 2**32 - 1])
def test_mt19937_is_numpys(generator, seed):
    generator.seed(seed)
    want = np.frombuffer(np.random.RandomState(seed).bytes(4 * 2000), np.uint32)
    assert [generator.random() for _ in range(2000)] == want.tolist()


def test_unseeded_generators_have_torch_default_seed(random_library, generator):
    assert random_library.default_generator_seed() == torch.Generator().initial_seed()
    assert generator.state() == bytes(torch.Generator().get_state().numpy())


@pytest.mark.parametrize("seed", [0, 12345, 2**32 + 9, 2**64 - 1])
@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625, 1248])
def test_state_is_torchs_and_moves_both_ways(generator, seed, draws):
    other = torch.Generator()
    other.manual_seed(seed - 2**64 if seed >= 2**63 else seed)
    generator.seed(seed)
    torch.rand(draws, generator=other)
    for _ in range(draws):
        generator.random()
    state = bytes(other.get_state().numpy())
    assert generator.state() == state

    torch.randn(3, generator=other)  # leaves a cached normal value
    assert generator.restore(bytes(other.get_state().numpy()))
    got = torch.empty(5, dtype=torch.float64)
    generator.call("normal_float64", got, 5, 1, 0.0, 1.0)
    want = torch.randn(5, generator=other, dtype=torch.float64)
    assert torch.allclose(got, want, rtol=rounding("float64", 8), atol=0)
    assert generator.state()[:5000] == bytes(other.get_state().numpy())[:5000]

    back = torch.frombuffer(bytearray(generator.state()), dtype=torch.uint8)
    other.set_state(back)
    assert other.initial_seed() % 2**64 == seed
    assert int(torch.rand(1, generator=other) * 2**24) == generator.random() % 2**24


@pytest.mark.parametrize("size", [0, 624, 5047, 5057])
def test_states_of_other_sizes_are_refused(generator, size):
    before = generator.state()
    assert not generator.restore(bytes(size))
    assert generator.state() == before


def test_states_that_are_no_engine_are_refused(generator):
    before = generator.state()
    assert not generator.restore(bytes(5056))
    broken = bytearray(before)
    broken[8:12] = (700).to_bytes(4, "little")
    assert not generator.restore(bytes(broken))
    assert generator.state() == before


def test_clone_continues_alike_and_apart(random_library, generator):
    generator.call("normal_float32", torch.empty(3), 3, 1, 0.0, 1.0)
    copy = type(generator)(
        random_library, random_library.generator_clone(generator.pointer)
    )
    assert copy.state() == generator.state()
    first = generator.random()
    assert copy.state() != generator.state()
    assert copy.random() == first


def test_seed_from_entropy_is_the_initial_seed(random_library, generator):
    seeds = {random_library.generator_random_seed(generator.pointer) for _ in "ab"}
    assert len(seeds) == 2
    assert random_library.generator_initial_seed(generator.pointer) in seeds
