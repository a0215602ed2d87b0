"""Tensors that calls write into: overlap with inputs, resizing, memory order."""

from __future__ import annotations

import pytest
import taeda


def test_cat_into_one_of_its_inputs_is_refused() -> None:
    empty, full = taeda.zeros(0), taeda.ones(4, 6)
    for out in (empty, full):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            taeda.cat([empty, full], dim=0, out=out)
    assert empty.shape == (0,)


def test_cat_of_nothing_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="non-empty list of Tensors"):
        taeda.cat([], dim=1)


def test_an_input_that_is_written_and_resized_is_read_first() -> None:
    x = taeda.arange(6.0).reshape(2, 3)
    taeda.sum(x, 0, out=x)
    assert x.tolist() == [3.0, 5.0, 7.0]


def test_gather_into_its_operands_is_refused() -> None:
    index = taeda.tensor([1, 0, 2])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        taeda.gather(index, 0, index[1:], out=index[:1])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        taeda.gather(index, 0, taeda.tensor([0, 0, 0]), out=index)


def test_positions_of_nonzero_lie_dim_after_dim() -> None:
    x = taeda.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert taeda.nonzero(x).tolist() == [[0, 0], [1, 0], [1, 1]]
    assert taeda.nonzero(x).stride() == (1, 3)
    grown = taeda.empty(0, dtype=taeda.int64)
    taeda.nonzero(x, out=grown)
    assert grown.stride() == (1, 3)
    fits = taeda.empty(3, 2, dtype=taeda.int64)
    taeda.nonzero(x, out=fits)
    assert fits.stride() == (2, 1)
    assert fits.tolist() == grown.tolist() == taeda.nonzero(x).tolist()


def test_a_vector_times_a_matrix_leaves_out_contiguous() -> None:
    out = taeda.zeros(6)[::2]
    got = taeda.matmul(taeda.ones(2), taeda.ones(2, 3), out=out)
    assert got is out
    assert out.stride() == (1,)
    assert out.tolist() == [2.0, 2.0, 2.0]


def test_sum_to_no_dims_is_a_sum() -> None:
    x = taeda.tensor(True)
    total = x.sum_to_size(())
    assert total.dtype == taeda.int64
    y = taeda.tensor(2.0)
    assert y.sum_to_size(()).data_ptr() != y.data_ptr()
    z = taeda.ones(2)
    assert z.sum_to_size(2).data_ptr() == z.data_ptr()


def test_float_power_writes_doubles_alone() -> None:
    x = taeda.ones(3)
    with pytest.raises(RuntimeError, match="base given to float_power_ has dtype"):
        x.float_power_(2)
    with pytest.raises(RuntimeError, match="output given to float_power has dtype"):
        taeda.float_power(x, 2, out=taeda.empty(3))
    assert taeda.full((2,), 3.0, dtype=taeda.float64).float_power_(2).tolist() == [9, 9]


def test_results_are_not_squeezed_into_smaller_types() -> None:
    with pytest.raises(RuntimeError, match="can't be cast"):
        taeda.ones(2, dtype=taeda.int64).polygamma_(1)
    outs = (taeda.empty(0, dtype=taeda.float64), taeda.empty(0))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        taeda.aminmax(taeda.ones(3), out=outs)
