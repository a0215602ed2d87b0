"""What is refused, with which error, and what its message says."""

from __future__ import annotations

import pytest
import taeda

F = taeda.nn.functional


def test_indices_out_of_range() -> None:
    x, rows = taeda.zeros(3, 2), taeda.ones(1, 2)
    far = taeda.tensor([5])
    with pytest.raises(RuntimeError, match="index 5 is out of bounds"):
        x.index_add(0, far, rows)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x[:, 0].index_add(0, far, taeda.ones(1))
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x.index_copy(0, far, rows)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x.index_fill(0, far, 1.0)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        x.index_reduce(0, far, rows, "prod")


def test_another_number_of_indices_than_slices() -> None:
    x, two = taeda.zeros(3, 2), taeda.tensor([0, 1])
    with pytest.raises(RuntimeError, match="Number of indices"):
        x.index_add(0, two, taeda.ones(1, 2))
    with pytest.raises(IndexError, match="Number of indices"):
        x.index_copy(0, two, taeda.ones(1, 2))


def test_abs_of_complex_numbers_is_not_in_place() -> None:
    z = taeda.zeros(2, dtype=taeda.complex64)
    with pytest.raises(RuntimeError, match="In-place abs is not supported"):
        z.abs_()
    assert z.abs().dtype == taeda.float32


def test_windows_that_do_not_move() -> None:
    x, w = taeda.ones(1, 1, 4), taeda.ones(1, 1, 2)
    with pytest.raises(RuntimeError, match="stride must be greater than zero"):
        F.max_pool1d(x, 2, stride=0)
    with pytest.raises(RuntimeError, match="dilation must be greater than zero"):
        F.max_pool1d(x, 2, dilation=0)
    with pytest.raises(RuntimeError, match="dilation should be greater than zero"):
        F.conv1d(x, w, dilation=0)
    with pytest.raises(RuntimeError, match="Expected 3-dimensional input for 3-dim"):
        taeda.conv2d(taeda.ones(1, 1, 4, 3), w, padding="same")


def test_nonzero_as_tuple_takes_no_out() -> None:
    x, out = taeda.ones(2), taeda.empty(0, dtype=taeda.int64)
    with pytest.raises(RuntimeError, match="as_tuple"):
        taeda.nonzero(x, as_tuple=True, out=out)
    with pytest.raises(TypeError, match="must be Tensor, not tuple"):
        taeda.nonzero(x, as_tuple=True, out=(out,))


def test_gradients_of_embeddings_have_a_row_for_each_index():
    indices = taeda.tensor([0, 1, 2, 3])
    with pytest.raises(RuntimeError, match="a row of grad_output for each index"):
        taeda.ops.aten.embedding_dense_backward(taeda.ones(2, 3), indices, 4, -1, False)
    with pytest.raises(RuntimeError, match="at least one dim"):
        taeda.ops.aten.embedding_dense_backward(taeda.ones(()), indices, 4, -1, False)


def test_the_complement_of_floats_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="only implemented on integer and Boolean"):
        ~taeda.ones(2)
    assert (~taeda.tensor([0, 1])).tolist() == [-1, -2]


def test_windows_of_unfold_backward_have_a_size_and_move() -> None:
    backward = taeda.ops.aten.unfold_backward
    with pytest.raises(ValueError, match="step is 0 but must be > 0"):
        backward(taeda.ones(2, 3), [6], 0, 3, 0)
    with pytest.raises(RuntimeError, match="size is -1 but must be >= 0"):
        backward(taeda.ones(2, 3), [6], 0, -1, 1)
