"""Sums, means and maxima of table rows over bags."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from tolerance import rounding

INDICES = np.array([4, 1, 1, 0, 2, 4, 4, 3])
OFFSETS = np.array([0, 3, 3, 8])


@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 4}, {"include_last_offset": True}]
)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_modes(same, values, mode, options):
    def program(T, table, indices, offsets):
        return T.nn.functional.embedding_bag(
            indices, table, offsets, mode=mode, **options
        )

    same(program, values(5, 3), INDICES, OFFSETS)


def test_weights_of_samples(same, values):
    def program(T, table, factors, indices, offsets):
        return T.nn.functional.embedding_bag(
            indices,
            table,
            offsets,
            mode="sum",
            per_sample_weights=factors,
            padding_idx=2,
        )

    same(program, values(5, 3), values(8, seed=1), INDICES, OFFSETS)


@pytest.mark.parametrize("width", [1, 16, 150])
def test_wide_rows(same, values, width):
    """Whole vectors, several of them, and the columns that are left."""

    def program(T, table, factors, indices, offsets):
        bag = T.nn.functional.embedding_bag
        mean = bag(indices, table, offsets, mode="mean", padding_idx=1)
        return mean + bag(
            indices, table, offsets, mode="sum", per_sample_weights=factors
        )

    same(program, values(5, width), values(8, seed=1), INDICES, OFFSETS)


def test_frequencies_divide_as_in_embedding(values):
    """PyTorch counts other rows here than the one it scales; `embedding` is right."""
    indices, grads = taeda.from_numpy(INDICES), []
    for lookup in (taeda.nn.functional.embedding, taeda.nn.functional.embedding_bag):
        table = taeda.from_numpy(values(5, 3)).requires_grad_()
        options = {} if lookup is taeda.nn.functional.embedding else {"mode": "sum"}
        rows = lookup(indices.view(2, 4), table, scale_grad_by_freq=True, **options)
        rows.sum().backward()
        grads.append(table.grad.numpy())
    np.testing.assert_allclose(grads[1], grads[0], rtol=rounding("float64", 8))


def test_bag_sizes_and_places(torch):
    got, want = (
        T.embedding_bag(
            T.eye(5), T.from_numpy(INDICES), T.from_numpy(OFFSETS), False, 2
        )
        for T in (taeda, torch)
    )
    for have, right in zip(got, want, strict=True):
        np.testing.assert_array_equal(have.numpy(), right.numpy())


def test_errors():
    bag, table = taeda.nn.functional.embedding_bag, taeda.ones(2, 3)
    with pytest.raises(RuntimeError, match="found idx to be 2"):
        bag(taeda.tensor([[0, 2]]), table)
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        bag(taeda.tensor([0, 1]), table, taeda.tensor([1]))


def test_the_last_bag_with_padding_runs_to_the_end(same, values):
    def program(T, table, indices, offsets):
        options = {"include_last_offset": True, "padding_idx": 3}
        return T.nn.functional.embedding_bag(indices, table, offsets, **options)

    for last in (3, 5, 8):
        same(program, values(5, 3), INDICES, np.array([0, 3, last]))


@pytest.mark.parametrize(
    "change",
    [
        {"indices": [True, False]},
        {"offset2bag": [0.0, 0.0]},
        {"offset2bag": [-1, 0]},
        {"mode": -2},
        {"mode": 1, "bag_size": [2.0]},
        {"mode": 1, "bag_size": []},
        {"mode": 2, "maximum_indices": [[0, 9]]},
        {"mode": 2, "maximum_indices": [[0]]},
        {"mode": 1, "per_sample_weights": [1.0, 1.0]},
        {"per_sample_weights": [1.0]},
    ],
)
def test_gradients_check_what_they_are_given(change) -> None:
    given = {
        "grad": [[1.0, 2.0]],
        "indices": [0, 1],
        "offset2bag": [0, 0],
        "bag_size": [2],
        "maximum_indices": [[0, 1]],
    }
    rest = {"num_weights": 3, "scale_grad_by_freq": False, "mode": 0}

    def call(values):
        tensors = {
            k: taeda.tensor(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return taeda.ops.aten._embedding_bag_dense_backward(
            **{"per_sample_weights": None, **tensors}
        )

    assert call(given | rest).tolist() == [[1, 2], [1, 2], [0, 0]]
    with pytest.raises((RuntimeError, IndexError), match="embedding_bag"):
        call(given | rest | change)
