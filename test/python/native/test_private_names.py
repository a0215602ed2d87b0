"""Operators by private names, which graphs and libraries call, against PyTorch's."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch

INF = float("inf")
CALLS = {
    "safe_softmax": lambda m: m.ops.aten._safe_softmax(
        m.tensor([[-INF, -INF], [0.0, 1.0], [-INF, 2.0]]), 1
    ),
    "safe_softmax_dtype": lambda m: m.ops.aten._safe_softmax(
        m.tensor([-INF, 1.0]), 0, m.float64
    ),
    "chunk_cat_rows": lambda m: m._chunk_cat(
        [m.arange(6.0).reshape(3, 2), m.arange(4.0).reshape(4, 1)], 0, 2
    ),
    "chunk_cat_columns": lambda m: m._chunk_cat(
        [m.arange(6.0).reshape(2, 3), m.arange(10.0).reshape(2, 5)], 1, 2
    ),
    "masked_index": lambda m: m._unsafe_masked_index(
        m.arange(3.0), mask(m), [places(m)], 7.0
    ),
    "masked_index_rows": lambda m: m._unsafe_masked_index(
        m.arange(6.0).reshape(3, 2), mask(m)[:, None].expand(4, 2), [places(m)], 7.0
    ),
    "masked_put": lambda m: m._unsafe_masked_index_put_accumulate(
        m.arange(3.0), mask(m), [places(m)], m.ones(4)
    ),
    "batch_norm": lambda m: m._native_batch_norm_legit_no_training(
        m.arange(4.0).reshape(2, 2), None, None, m.ones(2), m.ones(2), 0.1, 0.0
    )[0],
}


def places(m):
    return m.tensor([5, -9, 1, 2])


def mask(m):
    return m.tensor([False, False, True, True])


@pytest.mark.parametrize("name", CALLS)
def test_results_are_theirs(name: str) -> None:
    ours, theirs = CALLS[name](taeda), CALLS[name](torch)
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_gradients_pass_where_the_mask_is_true() -> None:
    x = taeda.arange(3.0, requires_grad=True)
    taeda._unsafe_masked_index(x, mask(taeda), [places(taeda)], 7.0).sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


def test_chunks_refuse_what_does_not_fit() -> None:
    ones = taeda.ones
    with pytest.raises(RuntimeError, match="positive num_chunks, got 0"):
        taeda._chunk_cat([ones(2)], 0, 0)
    with pytest.raises(RuntimeError, match="non-empty input tensor list"):
        taeda._chunk_cat([], 0, 1)
    with pytest.raises(RuntimeError, match=r"same sizes .* \[2, 2\] and \[3, 2\]"):
        taeda._chunk_cat([ones(2, 2), ones(3, 2)], 1, 1)
    with pytest.raises(RuntimeError, match="same dtype, got Float and Double"):
        taeda._chunk_cat([ones(2), ones(2).double()], 0, 1)
    with pytest.raises(RuntimeError, match="to be non-empty"):
        taeda._chunk_cat([ones(0)], 0, 1)
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        taeda._unsafe_masked_index(ones(2), ones(2).bool(), [None, places(taeda)], 0)
