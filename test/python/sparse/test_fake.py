"""Fake tensors stand for sparse ones: layout, sizes and dtype, without entries."""

from __future__ import annotations

import pytest
import taeda
from taeda._subclasses.fake_tensor import FakeTensor, FakeTensorMode

MAKE = {
    "sparse_coo": lambda x: x.to_sparse(),
    "sparse_csr": lambda x: x.to_sparse_csr(),
    "sparse_csc": lambda x: x.to_sparse_csc(),
    "sparse_bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "sparse_bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


def fake(layout: str) -> FakeTensor:
    return FakeTensorMode().from_tensor(MAKE[layout](taeda.eye(4)))


@pytest.mark.parametrize("layout", MAKE)
def test_the_layout_stays_and_entries_go(layout: str) -> None:
    x = fake(layout)
    assert type(x) is FakeTensor and x.layout is getattr(taeda, layout)
    assert x.shape == (4, 4) and x.device.type == "cpu" and not x.is_meta
    assert x.is_sparse == (layout == "sparse_coo")
    assert (x.sparse_dim(), x.dense_dim(), x._nnz()) == (2, 0, 0)
    values = x.values()
    assert type(values) is FakeTensor and values.device.type == "cpu"
    assert values.shape == ((0, 2, 2) if "bs" in layout else (0,))


@pytest.mark.parametrize("layout", MAKE)
def test_operators_give_what_they_give_of_real_ones(layout: str) -> None:
    real, x = MAKE[layout](taeda.eye(4)), fake(layout)
    for call in (
        lambda t: t * 2,
        lambda t: t.t(),
        lambda t: t.clone(),
        lambda t: t.to(taeda.float64),
        lambda t: t.to_dense(),
        lambda t: t @ t.new_ones(4, 3, layout=taeda.strided),
        lambda t: t.sin(),
    ):
        want = call(real)
        with x.fake_mode:
            got = call(x)
        assert type(got) is FakeTensor
        assert (got.layout, got.shape, got.dtype) == (
            want.layout,
            want.shape,
            want.dtype,
        )


def test_places_of_coordinates() -> None:
    x = fake("sparse_coo")
    assert x.indices().shape == (2, 0) and x.is_coalesced()
    with x.fake_mode:
        assert (x + x).coalesce().layout is taeda.sparse_coo
        assert taeda.sparse.sum(x).shape == ()


def test_the_same_tensor_has_one_fake() -> None:
    mode, real = FakeTensorMode(), taeda.eye(3).to_sparse().requires_grad_()
    assert mode.from_tensor(real) is mode.from_tensor(real)
    assert mode.from_tensor(real).requires_grad
