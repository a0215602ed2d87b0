"""Copies between geometries, and masks that take other paths, against NumPy."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import taeda

SHAPES = [(1, 9), (16, 16), (33, 70), (5, 3, 65), (8, 1, 17, 9), (2, 64, 3, 31)]


DTYPES = ["uint8", "int16", "float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_permuted_and_flipped_copies(shape, dtype):
    generator = np.random.default_rng(0)
    array = (generator.random(shape) * 100).astype(dtype)
    for _ in range(6):
        order = generator.permutation(len(shape)).tolist()
        wanted = array.transpose(order)
        moved = taeda.from_numpy(array).permute(order)
        assert np.array_equal(moved.contiguous().numpy(), wanted)
        flipped = moved.flip(0, -1) if len(shape) > 1 else moved.flip(0)
        assert np.array_equal(flipped.numpy(), np.flip(wanted, (0, -1)))
        halves = moved[..., ::2].contiguous()
        assert np.array_equal(halves.numpy(), wanted[..., ::2])


def test_a_mask_alone_reads_and_writes():
    array = np.random.default_rng(1).random((7, 5)).astype("float32")
    mask = array > 0.5
    x, where = taeda.from_numpy(array.copy()), taeda.from_numpy(mask)
    assert np.array_equal(x[where].numpy(), array[mask])
    assert x[taeda.zeros(7, 5, dtype=taeda.bool)].shape == (0,)
    x[where] = 3.0
    array[mask] = 3.0
    assert np.array_equal(x.numpy(), array)
    rows = taeda.tensor([True, False, True, False, False, False, True])
    x[rows] = x[:3] + 1
    array[rows.numpy()] = array[:3] + 1
    assert np.array_equal(x.numpy(), array)


def test_index_put_refuses_its_own_memory():
    x = taeda.arange(12.0).view(4, 3)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[taeda.tensor([1, 2, 3])] = x[:3]
    x[taeda.tensor([1, 2, 3])] = x[:3].clone()
    wanted = np.arange(12.0).reshape(4, 3)
    wanted[1:] = wanted[:3].copy()
    assert np.array_equal(x.numpy(), wanted)


def test_deepcopy_of_tensors_and_typed_storages_keeps_sharing():
    x = taeda.zeros(5)
    tensor, [storage], view = copy.deepcopy([x, [x.storage()], x.view(5)])
    tensor.add_(1)
    assert storage.tolist() == view.tolist() == [1.0] * 5
    assert x.tolist() == [0.0] * 5
