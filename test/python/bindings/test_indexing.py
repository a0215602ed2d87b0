"""tensor[key] and tensor[key] = value agree with PyTorch, errors included."""

from __future__ import annotations

import random

import pytest
import taeda

KEYS = [
    "0",
    "-1",
    "1:",
    "::2",
    "1:1",
    "-2:",
    "...",
    "None",
    ":",
    "()",
    "0, 1",
    "0, 1, 2",
    ":, 0",
    "..., 0",
    "0, ...",
    "None, 0, None, 1",
    "1, :, 0:2",
    ":, None, 1",
    "..., None",
    "True",
    "False",
    "None, True",
    "[0, 1]",
    "[[0, 1], [1, 0]]",
    "[0, 1], [1, 2]",
    ":, [0, 2]",
    "[0], :, [1, 3]",
    "0, [0, 2]",
    "m.tensor([1, 0])",
    "m.tensor(1)",
    "m.tensor([True, False])",
    "x > 5",
    "x[0] > 5",
    "m.tensor([[True, False, True], [False, True, True]])",
    "m.tensor([[True, False, True], [False, True, True]]), 1",
    ":, m.tensor([True, False, True])",
    "m.tensor([1, 0]), ..., m.tensor([1, 0])",
    "..., ...",
    "[slice(0, 1), 0]",
    "slice(None, None, 2), 1",
    "m.tensor(1, dtype=m.uint8)",
    "[]",
]
WRONG = [
    "5",
    "0, 0, 0, 0",
    "'a'",
    "1.5",
    "::-1",
    "0, 7",
    "m.tensor([1.0])",
    "m.tensor([7])",
    "m.tensor([True, False, True])",
]
VALUES = [
    "7",
    "2.5",
    "True",
    "m.tensor(3)",
    "m.tensor([1])",
    "m.zeros(1, 1, 4, dtype=m.int64)",
]


def make(module):
    return module.tensor(
        [[[i * 12 + j * 4 + k for k in range(4)] for j in range(3)] for i in range(2)]
    )


def run(module, statement: str):
    x = make(module)
    space = {"m": module, "x": x, "y": None}
    try:
        exec(statement, space)
    except Exception as error:
        return type(error).__name__, str(error)
    y = space["y"]
    return x.tolist(), None if y is None else (tuple(y.shape), y.tolist())


@pytest.mark.parametrize("key", KEYS)
def test_get(torch, key):
    assert run(taeda, f"y = x[{key}]") == run(torch, f"y = x[{key}]")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
def test_set(torch, key, value):
    ours = run(taeda, f"x[{key}] = {value}")
    theirs = run(torch, f"x[{key}] = {value}")
    if isinstance(theirs[0], str):
        assert ours[0] == theirs[0]
    else:
        assert ours == theirs


@pytest.mark.parametrize("key", WRONG)
def test_wrong_key(torch, key):
    ours, theirs = run(taeda, f"y = x[{key}]"), run(torch, f"y = x[{key}]")
    assert isinstance(ours[0], str) and ours[0] == theirs[0]


@pytest.mark.parametrize("seed", range(60))
def test_random_basic_keys(torch, seed):
    rng = random.Random(seed)
    parts = []
    for size in (2, 3, 4)[: rng.randint(1, 3)]:
        start, stop = sorted(rng.randint(-size, size) for _ in range(2))
        choice = (
            str(rng.randint(-size, size - 1)),
            f"{start}:{stop}",
            f"{start}::{rng.randint(1, 3)}",
            ":",
            "None, :",
        )
        parts.append(rng.choice(choice))
    key = ", ".join(parts)
    assert run(taeda, f"y = x[{key}]") == run(torch, f"y = x[{key}]")


def test_view_shares_memory_and_version():
    x = taeda.zeros(2, 3)
    row = x[1]
    row[0] = 5
    assert x.tolist() == [[0, 0, 0], [5, 0, 0]]
    assert x._version == row._version == 1


def test_index_by_numpy_and_scalars():
    import numpy as np

    x = taeda.tensor([10, 11, 12])
    assert x[np.array([0, 2])].tolist() == [10, 12]
    assert x[np.int64(1)].item() == 11
    assert [10, 11, 12][taeda.tensor(2)] == 12


def test_deleting_items_is_an_error():
    x = taeda.zeros(2)
    with pytest.raises(TypeError, match="does not support deleting items"):
        del x[0]


def test_masks_of_bytes_warn_once_each():
    x = taeda.ones(3, 4)
    rows = taeda.tensor([1, 0, 1], dtype=taeda.uint8)
    columns = taeda.tensor([1, 0, 0, 1], dtype=taeda.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8") as seen:
        x[rows]
        x[rows] = 2
        x[rows, columns]
    assert len(seen) == 4


def test_no_index_fits_a_dim_without_elements():
    with pytest.raises(IndexError, match="for dimension with size 0"):
        taeda.empty(10, 0)[:, [0, 1]]


def test_an_element_is_repeated_over_its_own_row():
    x = taeda.arange(6.0).reshape(2, 3)
    x[1] = x[1][1]
    assert x.tolist() == [[0, 1, 2], [4, 4, 4]]
    x[:, :2] = x[0, 1:2]
    assert x.tolist() == [[1, 1, 2], [1, 1, 4]]
    with pytest.raises(RuntimeError, match="single memory location"):
        x[0, 1:] = x[0, :2]


def test_a_mask_is_filled_by_one_element_of_another_dtype(torch):
    for library in (torch, taeda):
        values = library.arange(4)
        values[values > 1] = library.ones(1) * 2.5
        assert values.tolist() == [0, 1, 2, 2]
        for wrong in (library.ones(2), library.ones(1) * 1j):
            with pytest.raises(RuntimeError):
                values[values > 1] = wrong
