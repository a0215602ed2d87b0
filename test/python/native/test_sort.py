"""Rows that sort by their bits, against PyTorch's stable order."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import torch

DTYPES = ["float16", "float32", "float64", "uint8", "int32", "int64", "bool"]


def values(shape: tuple, dtype: str) -> np.ndarray:
    """Many equal values, signed zeros, infinities and NaN among them."""
    array = (np.random.default_rng(0).standard_normal(shape) * 20).astype(dtype)
    if dtype.startswith("float"):
        array.flat[::97] = np.nan
        array.flat[::50] = 0.0
        array.flat[1::50] = -0.0
        array.flat[7:9] = np.inf, -np.inf
    return array


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim"), [((5000,), 0), ((3, 1024), 1), ((1500, 4), 0)]
)
def test_long_rows(shape, dim, descending, dtype):
    array = values(shape, dtype)
    options = {"dim": dim, "descending": descending, "stable": True}
    found, places = taeda.from_numpy(array).sort(**options)
    wanted, wanted_places = torch.from_numpy(array).sort(**options)
    assert np.array_equal(places.numpy(), wanted_places.numpy())
    assert found.numpy().tobytes() == wanted.numpy().tobytes()


def test_wide_integers():
    array = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 4000)
    found, places = taeda.from_numpy(array).sort()
    assert np.array_equal(found.numpy(), np.sort(array))
    assert np.array_equal(array[places.numpy()], found.numpy())


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_runs_of_neighbours(dtype):
    """Few runs are copied out, many keep the memory that was made for all."""
    for text in ("", "1", "1 1 1 1 1 1 1 2", "1 2 2 3 1 4 5 5", "0 1 0 1 0 1"):
        row = np.array([float(v) for v in text.split()]).astype(dtype)
        x = taeda.from_numpy(row)
        values, inverse, counts = taeda.unique_consecutive(x, True, True)
        begins = np.flatnonzero(np.r_[row[:1] == row[:1], row[1:] != row[:-1]])
        assert values.tolist() == row[begins].tolist()
        assert counts.tolist() == np.diff(np.r_[begins, len(row)]).tolist()
        assert values[inverse].tolist() == row.tolist()
        assert taeda.unique_consecutive(x).tolist() == values.tolist()


EXTREMES = {
    "all": (-(2**63), 2**63 - 1),
    "just wide": (-5, 2**32 - 5),
    "just narrow": (-(2**63), -(2**63) + 2**32 - 1),
    "equal": (7, 7),
}


@pytest.mark.parametrize("bounds", EXTREMES.values(), ids=EXTREMES)
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_of_integers_near_and_far_apart(bounds, descending) -> None:
    drawn = np.random.default_rng(3).integers(*bounds, (2, 1500), endpoint=True)
    drawn[:, [4, 900]] = bounds
    values, places = taeda.from_numpy(drawn).sort(
        dim=1, descending=descending, stable=True
    )
    order = np.sort(drawn, 1, kind="stable")
    want = order[:, ::-1] if descending else order
    assert values.numpy().tolist() == want.tolist()
    assert np.take_along_axis(drawn, places.numpy(), 1).tolist() == want.tolist()
    ties = values[:, 1:] == values[:, :-1]
    assert bool((places.diff(dim=1)[ties] > 0).all())
