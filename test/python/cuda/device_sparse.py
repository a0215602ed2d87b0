"""Products of sparse matrices on a device, beside the CPU's."""

from __future__ import annotations

import pytest
import taeda
from device_linalg import close

Tensor = taeda.Tensor
DTYPES = (taeda.float32, taeda.float64, taeda.complex64, taeda.complex128)
SMALL = (taeda.float16, taeda.bfloat16)


@pytest.fixture(autouse=True)
def seeded() -> None:
    taeda.manual_seed(5)


def matrix(rows: int, columns: int, dtype: taeda.dtype, share: float = 0.3) -> Tensor:
    """Strided, with zeros, an empty row and a full one."""
    t = taeda.randn(rows, columns, dtype=taeda.complex128).to(dtype)
    t = t * (taeda.rand(rows, columns) < share).to(dtype)
    t[0] = 0
    t[-1] = 1
    return t


LAYOUTS = {
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((1, 1)),
    "coo": lambda t: t.to_sparse(),
    "twice": lambda t: taeda.sparse_coo_tensor(
        taeda.cat([t.to_sparse().indices()] * 2, 1),
        taeda.cat([t.to_sparse().values()] * 2),
        t.shape,
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_with_dense_matrices(layout: str, dtype: taeda.dtype) -> None:
    a = LAYOUTS[layout](matrix(9, 70, dtype))
    there = a.cuda()
    for columns in (1, 5, 40, 64):
        b = taeda.randn(70, columns, dtype=dtype)
        close(there @ b.cuda(), a @ b)
        close(taeda.sparse.mm(there, b.cuda()), taeda.sparse.mm(a, b))
        close(there @ b.mT.contiguous().cuda().mT, a @ b)
        added = taeda.randn(9, columns, dtype=dtype)
        want = taeda.addmm(added, a, b, beta=2, alpha=-3)
        close(taeda.addmm(added.cuda(), there, b.cuda(), beta=2, alpha=-3), want)
    close(there @ b[:, 0].cuda(), a @ b[:, 0])
    left = taeda.randn(4, 9, dtype=dtype)
    close(left.cuda() @ there, left @ a)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_small_floats_add_up_in_float(dtype: taeda.dtype) -> None:
    dense, b = matrix(9, 70, dtype), taeda.randn(70, 33).to(dtype)
    want = (dense.float() @ b.float()).to(dtype)
    got = dense.cuda().to_sparse_csr() @ b.cuda()
    assert got.dtype == dtype and taeda.allclose(got.cpu(), want, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("index", [taeda.int32, taeda.int64], ids=str)
def test_entries_of_products(index: taeda.dtype, dtype: taeda.dtype) -> None:
    found = matrix(9, 12, dtype).to_sparse_csr()
    a = taeda.sparse_csr_tensor(
        found.crow_indices().to(index),
        found.col_indices().to(index),
        found.values(),
        found.shape,
    )
    left, right = taeda.randn(9, 40, dtype=dtype), taeda.randn(40, 12, dtype=dtype)
    for beta, alpha in ((1, 1), (0, 2), (3, -1)):
        want = taeda.sparse.sampled_addmm(a, left, right, beta=beta, alpha=alpha)
        got = taeda.sparse.sampled_addmm(
            a.cuda(), left.cuda(), right.cuda(), beta=beta, alpha=alpha
        )
        assert got.layout == taeda.sparse_csr
        close(got.values(), want.values())
        close(got.to_dense(), want.to_dense())
    close(a.cuda() @ right.mT.cuda(), a @ right.mT)


def test_whole_numbers_and_nothing() -> None:
    a, b = matrix(5, 6, taeda.float32), taeda.ones(6, 3, dtype=taeda.int64)
    whole = (a * 3).to(taeda.int64).to_sparse_csr()
    close(whole.cuda() @ b.cuda(), whole @ b)
    empty = taeda.zeros(4, 6).to_sparse_csr()
    close(empty.cuda() @ b.float().cuda(), taeda.zeros(4, 3))
    none = taeda.zeros(0, 6).to_sparse()
    close(none.cuda() @ b.float().cuda(), taeda.zeros(0, 3))


def test_gradients() -> None:
    def loss(dense: Tensor, b: Tensor) -> Tensor:
        return taeda.sparse.mm(dense.to_sparse(), b).square().sum()

    dense, b = matrix(6, 8, taeda.float64), taeda.randn(8, 3, dtype=taeda.float64)
    here = [t.clone().requires_grad_() for t in (dense, b)]
    there = [t.cuda().requires_grad_() for t in (dense, b)]
    loss(*here).backward()
    loss(*there).backward()
    for x, y in zip(there, here, strict=True):
        close(x.grad, y.grad)


def test_the_same_bits_each_time() -> None:
    a, b = matrix(30, 200, taeda.float32).cuda(), taeda.randn(200, 33, device="cuda")
    there = a.to_sparse_csr()
    assert taeda.equal(there @ b, there @ b)
