"""tril and triu beyond the edges of their matrices."""

from __future__ import annotations

import pytest
import taeda
import torch

FARTHEST = (-(2**63), -(2**62), -9, 9, 2**62, 2**63 - 1)


@pytest.mark.parametrize("k", FARTHEST)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4), (4, 1), (1, 4)])
def test_all_or_nothing_is_kept(k: int, shape: tuple) -> None:
    x = taeda.ones(shape)
    nothing = taeda.zeros(shape)
    assert taeda.equal(x.tril(k), x if k > 0 else nothing)
    assert taeda.equal(x.triu(k), x if k < 0 else nothing)
    assert taeda.equal(x.clone().triu_(k), x.triu(k))


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_places_are_counted_without_visiting_all_rows(name: str) -> None:
    """Of few rows and columns as PyTorch has them; of many, at once."""
    ours, theirs = getattr(taeda, name), getattr(torch, name)
    for rows in range(5):
        for cols in range(5):
            for offset in (*range(-6, 7), *FARTHEST):
                near = max(-9, min(offset, 9))
                found = ours(rows, cols, offset).tolist()
                assert found == theirs(rows, cols, near).tolist(), (rows, cols, offset)
    many = 2**45
    assert taeda.triu_indices(many, 2).tolist() == [[0, 0, 1], [0, 1, 1]]
    assert taeda.tril_indices(2, many).tolist() == [[0, 1, 1], [0, 0, 1]]
