"""Where sorts put equal elements, and what unique and bincount count."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import torch

DTYPES = ["bool", "uint8", "int64", "float32", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_unstable_sorts_order_ties_as_pytorch(dtype: str, descending: bool) -> None:
    numbers = np.random.default_rng(5).integers(0, 2, (3, 700))
    got, want = (
        library.sort(
            library.from_numpy(numbers).to(getattr(library, dtype)),
            descending=descending,
        )
        for library in (taeda, torch)
    )
    assert got.indices.tolist() == want.indices.tolist()
    stable = taeda.sort(taeda.from_numpy(numbers), stable=True, descending=descending)
    ties = np.argsort(-numbers if descending else numbers, kind="stable")
    assert stable.indices.tolist() == ties.tolist()


@pytest.mark.parametrize("k", [1, 9, 300, 700])
@pytest.mark.parametrize("largest", [False, True])
def test_topk_picks_the_ties_that_pytorch_picks(k: int, largest: bool) -> None:
    numbers = np.random.default_rng(6).integers(0, 5, (2, 700)).astype(np.float32)
    got = taeda.topk(taeda.from_numpy(numbers), k, largest=largest)
    want = torch.topk(torch.from_numpy(numbers), k, largest=largest)
    assert got.indices.tolist() == want.indices.tolist()
    assert got.values.tolist() == want.values.tolist()


@pytest.mark.parametrize("width", [3, 10**12])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_unique_of_narrow_and_wide_ranges(width: int, kind: type) -> None:
    numbers = np.random.default_rng(7).integers(-width, width, 500).astype(kind)
    numbers = np.concatenate([numbers, numbers[:100]])
    values, inverse, counts = taeda.unique(
        taeda.from_numpy(numbers), return_inverse=True, return_counts=True
    )
    want = np.unique(numbers, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), want[0])
    np.testing.assert_array_equal(inverse.numpy(), want[1])
    np.testing.assert_array_equal(counts.numpy(), want[2])
    alone = taeda.unique(taeda.from_numpy(numbers))
    np.testing.assert_array_equal(alone.numpy(), want[0])


def test_unique_keeps_every_nan() -> None:
    x = taeda.tensor([float("nan"), 1.0, float("nan"), 1.0])
    assert taeda.unique(x).shape == (3,)
    values, counts = taeda.unique(x, return_counts=True)
    assert counts.tolist() == [2, 1, 1]


def test_bincount_refuses_negative_numbers() -> None:
    assert taeda.bincount(taeda.tensor([2, 0, 2])).tolist() == [1, 0, 2]
    assert taeda.bincount(taeda.tensor([], dtype=taeda.int64)).tolist() == []
    with pytest.raises(RuntimeError, match="non-negative"):
        taeda.bincount(taeda.tensor([1, -3]))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 21])
def test_places_in_sorted_rows(right, count):
    """Values are looked up several at a time, each in its own row."""
    draw = np.random.default_rng(0)
    for n in (0, 1, 2, 5, 100):
        rows = np.sort(draw.integers(0, 20, (3, n)), axis=1)
        values = draw.integers(-1, 21, (3, count))
        side = "right" if right else "left"
        pairs = zip(rows, values, strict=True)
        wanted = [np.searchsorted(*pair, side).tolist() for pair in pairs]
        of = taeda.from_numpy
        found = taeda.searchsorted(of(rows), of(values), right=right)
        assert found.tolist() == wanted
        order = draw.permuted(np.tile(np.arange(n), (3, 1)), axis=1)
        mixed = np.take_along_axis(rows, np.argsort(order, axis=1), axis=1)
        found = taeda.searchsorted(of(mixed), of(values), right=right, sorter=of(order))
        assert found.tolist() == wanted


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 64, 65, 96, 130, 1000])
@pytest.mark.parametrize("distinct", [3, 5000])
def test_medians_are_in_the_middle(dtype, n, distinct):
    """Of equal elements the first come first; rows and columns alike."""
    drawn = taeda.Generator().manual_seed(n)
    x = taeda.randint(0, distinct, (3, n), generator=drawn).to(getattr(taeda, dtype))
    x = x - 1 if dtype != "uint8" else x
    for rows, dim in ((x, 1), (x.t().contiguous(), 0), (x[:, ::2], 1)):
        values, places = rows.median(dim)
        for r, line in enumerate((rows if dim else rows.t()).tolist()):
            order = sorted(range(len(line)), key=lambda i: (line[i], i))
            want = order[(len(line) - 1) // 2]
            assert (values[r], places[r]) == (line[want], want)


def _unusual_rows(kind: str, n: int) -> np.ndarray:
    random = np.random.default_rng(n)
    x = random.normal(size=(5, n)).astype(np.float32)
    with np.errstate(all="ignore"):
        return {
            "normal": lambda: x,
            "sorted": lambda: np.sort(x, 1)[:, ::-1].copy(),
            "one value": lambda: np.full_like(x, 3),
            "wide": lambda: np.exp(40 * x),
            "denormal": lambda: x * np.float32(1e-44),
            "some NaN": lambda: np.where(x > 0.5, np.float32(np.nan), x),
            "NaN": lambda: np.full_like(x, -np.nan),
            "infinite": lambda: np.where(np.abs(x) > 0.3, np.float32(np.inf) * x, x),
            "zeros": lambda: np.where(x > 0, np.float32(0), np.float32(-0.0)),
            "bits": lambda: random.integers(0, 2**32, x.shape, np.uint32).view(x.dtype),
        }[kind]()


KINDS = ["normal", "sorted", "one value", "wide", "denormal"]
KINDS += ["some NaN", "NaN", "infinite", "zeros", "bits"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_unusual_numbers(kind: str, name: str) -> None:
    for n in (1, 2, 16, 17, 32, 33, 64, 65, 97, 500, 5000):
        x = _unusual_rows(kind, n)
        for rows, dim in ((x, 1), (x.T.copy(), 0), (x.T, 0)):
            values, places = getattr(taeda.from_numpy(rows), name)(dim)
            want = getattr(torch.from_numpy(rows), name)(dim).values.numpy()
            np.testing.assert_array_equal(values.numpy(), want)
            lines = rows if dim else rows.T
            for line, place, value in zip(lines, places.tolist(), want, strict=True):
                np.testing.assert_array_equal(line[place], value)
                # Of equal ones, the place that a stable sort leaves there.
                order = np.argsort(line + np.float32(0), kind="stable")
                count = int((line == line).sum())
                nan = count < n and (name == "median" or count == 0)
                if nan:
                    assert not np.isnan(line[:place]).any()
                else:
                    assert place == order[(count - 1) // 2]
