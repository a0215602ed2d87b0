"""Sparse gradients: embeddings, .grad, optimizers; and checkpoints."""

from __future__ import annotations

import io

import numpy as np
import pytest
import taeda
import taeda.sparse
import torch
from sides import assert_same

pytestmark = pytest.mark.filterwarnings("ignore")


def table(library):
    """An embedding's table of 7 rows."""
    rows = (library.arange(21, dtype=library.float64).reshape(7, 3) - 10) / 8
    return rows.requires_grad_()


BAGS = [
    {"mode": mode, "padding_idx": padding, "last": last, "weighted": weighted}
    for mode in ("sum", "mean")
    for padding in (None, 2)
    for last in (False, True)
    for weighted in ((False, True) if mode == "sum" else (False,))
]


def embedded(library, padding):
    """The gradient of rows 2 1 2 5 0 of a table."""
    weight = table(library)
    indices = library.tensor([[2, 1, 2], [5, 0, 2]])
    out = library.nn.functional.embedding(
        indices, weight, padding_idx=padding, sparse=True
    )
    (out * library.arange(18).reshape(out.shape)).sum().backward()
    return weight.grad


@pytest.mark.parametrize("padding", [None, 2])
def test_embedding(padding) -> None:
    """An entry for each row that was read."""
    ours, theirs = embedded(taeda, padding), embedded(torch, padding)
    assert (ours._nnz(), ours.is_coalesced()) == (theirs._nnz(), theirs.is_coalesced())
    assert_same(ours, theirs, "embedding", 1e-14)


def bagged(library, mode, padding_idx, last, weighted):
    weight = table(library)
    indices = library.tensor([2, 1, 2, 5, 0, 2])
    offsets = library.tensor([0, 2, 2, *([6] if last else [])])
    factors = library.arange(6, dtype=library.float64) / 4 if weighted else None
    out = library.nn.functional.embedding_bag(
        indices,
        weight,
        offsets,
        mode=mode,
        sparse=True,
        padding_idx=padding_idx,
        include_last_offset=last,
        per_sample_weights=factors,
    )
    (out * library.arange(out.numel()).reshape(out.shape)).sum().backward()
    return weight.grad


@pytest.mark.parametrize("options", BAGS, ids=str)
def test_embedding_bag(options) -> None:
    """Sums and means, with padding, weights and the last offset."""
    ours, theirs = bagged(taeda, **options), bagged(torch, **options)
    assert_same(ours.to_dense(), theirs.to_dense(), "embedding_bag", 1e-14)
    assert ours.is_sparse and theirs.is_sparse


def test_frequency_is_refused() -> None:
    """Sparse gradients are not scaled by how often a row was read."""
    out = taeda.nn.functional.embedding(
        taeda.tensor([1]), table(taeda), scale_grad_by_freq=True, sparse=True
    )
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported"):
        out.sum().backward()


def accumulated(library, order: str):
    """Sparse and strided gradients, one pass for each letter."""
    weight = table(library)
    rows = library.tensor([1, 4, 1])
    for kind in order:
        if kind == "s":
            out = library.nn.functional.embedding(rows, weight, sparse=True)
        elif kind == "d":
            out = weight * 2
        else:
            both = library.nn.functional.embedding(rows, weight, sparse=True)
            out = both.sum() + (weight * 3).sum()
        out.sum().backward()
    return weight.grad


@pytest.mark.parametrize("order", ["s", "ss", "sd", "ds", "b", "sb", "bs", "sss"])
def test_accumulation(order: str) -> None:
    """Strided as soon as a strided gradient has come."""
    ours, theirs = accumulated(taeda, order), accumulated(torch, order)
    assert str(ours.layout)[6:] == str(theirs.layout)[6:]
    assert_same(ours.to_dense(), theirs.to_dense(), order, 1e-14)


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.1}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "betas": (0.5, 0.7), "maximize": True}),
]


def trained(library, name, options):
    weight = table(library)
    optimizer = getattr(library.optim, name)([weight], **options)
    for step in range(4):
        optimizer.zero_grad()
        rows = library.tensor([step, 3, step + 1, 3])
        out = library.nn.functional.embedding(rows, weight, sparse=True)
        (out**2 * library.arange(3)).sum().backward()
        optimizer.step()
    return weight.detach()


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_optimizers(name, options) -> None:
    """Four steps of an embedding."""
    ours, theirs = trained(taeda, name, options), trained(torch, name, options)
    assert_same(ours, theirs, name, 1e-13)


def test_only_named_rows_are_touched() -> None:
    """A row without gradient keeps even a NaN."""
    weight = taeda.full((5, 2), float("nan"))
    weight[1] = 1.0
    grad = taeda.sparse_coo_tensor([[1, 1]], taeda.ones(2, 2), (5, 2))
    weight.add_(grad, alpha=-0.25)
    assert weight[1].tolist() == [0.5, 0.5]
    assert taeda.isnan(weight[[0, 2, 3, 4]]).all()


def test_history() -> None:
    """A change after the forward pass is an error; detached tensors keep theirs."""
    x = taeda.eye(3).to_sparse().requires_grad_()
    y = x * 1
    kept = y.detach()
    out = y.to_dense().exp()
    y.mul_(2)
    assert kept.to_dense().tolist() == taeda.eye(3).tolist()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    (x * 1).mul_(2).to_dense().sum().backward()
    assert (
        x.grad.is_sparse
        and x.grad.to_dense().tolist() == (2 * kept).to_dense().tolist()
    )


def both_ways(value):
    """What each library reads of what the other one wrote."""
    ours, theirs = io.BytesIO(), io.BytesIO()
    taeda.save(value(taeda), ours)
    torch.save(value(torch), theirs)
    ours.seek(0)
    theirs.seek(0)
    return taeda.load(theirs, weights_only=True), torch.load(ours, weights_only=True)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_checkpoints(layout: str) -> None:
    """Every layout, read and written by each library."""

    def value(library):
        dense = library.arange(24.0).reshape(4, 6) % 5
        if layout == "coo":
            return dense.to_sparse()
        blocks = ((2, 3),) if layout[0] == "b" else ()
        return getattr(dense, f"to_sparse_{layout}")(*blocks)

    read_by_us, read_by_them = both_ways(value)
    assert_same(read_by_us, value(torch), layout)
    assert_same(value(taeda), read_by_them, layout)


def test_damaged_checkpoints() -> None:
    """A place outside of the tensor is refused before anybody reads it."""
    for make in (
        lambda m: m.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (3,)),
        lambda m: m.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,), is_coalesced=True),
        lambda m: m.sparse_csr_tensor([0, 1, 2], [0, 9], [1.0, 2.0], (2, 3)),
        lambda m: m.sparse_csr_tensor([0, 9, 2], [0, 1], [1.0, 2.0], (2, 3)),
    ):
        file = io.BytesIO()
        torch.save(make(torch), file)
        file.seek(0)
        with pytest.raises(Exception, match="damaged"):
            taeda.load(file, weights_only=True)


def test_large_tables_are_not_copied() -> None:
    """A step of a large table costs what its rows cost: memory of three rows."""
    weight = taeda.zeros(100_000, 4, requires_grad=True)
    taeda.nn.functional.embedding(
        taeda.tensor([5, 7, 5]), weight, sparse=True
    ).sum().backward()
    assert weight.grad._values().numel() == 12
    taeda.optim.SGD([weight], lr=0.5).step()
    assert np.flatnonzero(weight.detach().numpy()[:, 0]).tolist() == [5, 7]


CHECKED = [
    lambda x, w: x.to_dense(),
    lambda x, w: taeda.sparse.mm(x, w),
    lambda x, w: x * 2,
    lambda x, w: x.to_sparse(),
]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("layout", ["coo", "csr", "bsc"])
@pytest.mark.parametrize("function", CHECKED, ids=["dense", "mm", "twice", "coo"])
def test_gradcheck(function, layout: str, masked: bool) -> None:
    """Analytic against numeric gradients, of entries or of all elements."""
    check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradcheck)
    dense = (taeda.arange(24, dtype=taeda.float64).reshape(4, 6) % 5 - 2) / 4
    blocks = ((2, 3),) if layout == "bsc" else ()
    x = (
        dense.to_sparse()
        if layout == "coo"
        else getattr(dense, f"to_sparse_{layout}")(*blocks)
    )
    w = taeda.arange(12, dtype=taeda.float64).reshape(6, 2) / 7
    assert check(function, (x.requires_grad_(), w.requires_grad_()), masked=masked)


def test_gradcheck_finds_wrong_gradients() -> None:
    """A gradient that is half of what it should be."""
    check = taeda.sparse.as_sparse_gradcheck(taeda.autograd.gradcheck)
    x = taeda.eye(2, dtype=taeda.float64).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="mismatch"):
        check(lambda x: x.to_dense() + x.detach().to_dense(), (x,), masked=True)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2, 4)], ids=str)
def test_linear_layers_of_sparse_weights(layout: str, shape: tuple) -> None:
    layer = taeda.nn.Linear(4, 5, dtype=taeda.float64)
    dense = layer.weight.detach().clone().requires_grad_()
    layer.weight = taeda.nn.Parameter(getattr(layer.weight, f"to_sparse_{layout}")())
    x = taeda.arange(np.prod(shape), dtype=taeda.float64).reshape(shape)
    x.requires_grad_()
    ours, wanted = layer(x), taeda.nn.functional.linear(x, dense, layer.bias)
    assert ours.layout == taeda.strided and taeda.allclose(ours, wanted)
    leaves = ([x, layer.weight, layer.bias], [x, dense, layer.bias])
    for got, want in zip(
        taeda.autograd.grad(ours.sum(), leaves[0]),
        taeda.autograd.grad(wanted.sum(), leaves[1]),
        strict=True,
    ):
        assert taeda.allclose(got.to_dense(), want)


def test_a_sparse_gradient_keeps_its_indices() -> None:
    layer = taeda.nn.Embedding(9, 2, sparse=True)
    index = taeda.tensor([7, 1])
    layer(index).sum().backward()
    index[0] = 8
    assert layer.weight.grad._indices().tolist() == [[7, 1]]
    narrow = taeda.nn.Embedding(3, 0, sparse=True)
    narrow(taeda.tensor([0, 2])).sum().backward()
    assert narrow.weight.grad.shape == (3, 0)
