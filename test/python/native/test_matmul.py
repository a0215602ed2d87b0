"""Products into tensors that the caller gives."""

from __future__ import annotations

import pytest
import taeda


@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_vector_by_matrix_restrides_out(torch, name):
    """A vector is computed as one row, and `out` takes that row's strides."""
    strides = []
    for T in (torch, taeda):
        out = T.zeros(8)[::2]
        if name == "matmul":
            T.matmul(T.ones(3), T.ones(3, 4), out=out)
        else:
            T._C._nn.linear(T.ones(3), T.ones(4, 3), out=out)
        assert out.tolist() == [3.0] * 4
        strides.append(out.stride())
    assert strides[0] == strides[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 7, 8, 33])
@pytest.mark.parametrize("n", [255, 256, 700, 4101])
@pytest.mark.parametrize("factors", [(1, 1), (1, 0), (0.5, 2)])
def test_row_by_wide_matrix(dtype, k, n, factors):
    """Whole numbers are summed exactly, in whatever order."""
    alpha, beta = factors
    dtype = getattr(taeda, dtype)
    row = (taeda.arange(k) % 5 - 2).to(dtype).view(1, k)
    matrix = (taeda.arange(k * n) % 11 - 5).to(dtype).view(k, n)
    start = (taeda.arange(n) % 3).to(dtype).view(1, n)
    want = alpha * (row.t() * matrix).sum(0, keepdim=True) + beta * start
    found = taeda.addmm(start, row, matrix, alpha=alpha, beta=beta)
    assert taeda.equal(found, want)
    wide = taeda.zeros(k, n + 3, dtype=dtype)
    wide[:, 1:-2] = matrix
    assert taeda.equal(row @ wide[:, 1:-2], (row.t() * matrix).sum(0, keepdim=True))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
@pytest.mark.parametrize("n", [1, 15, 32, 70])
def test_batches_of_dots(dtype, n):
    dtype = getattr(taeda, dtype)
    x = (taeda.arange(40 * n) % 5 - 2).to(dtype).view(40, 1, n)
    y = (taeda.arange(40 * n) % 3 - 1).to(dtype).view(40, n, 1)
    want = (x * y.transpose(1, 2)).sum(-1, keepdim=True)
    turned = y.view(40, n).t().contiguous().t().unsqueeze(-1)
    for right in (y, y.transpose(1, 2).contiguous().transpose(1, 2), turned):
        assert taeda.equal(x @ right, want)
        assert taeda.equal(x[::2] @ right[::2], want[::2])
    start = taeda.ones(40, 1, 1, dtype=dtype)
    found = taeda.baddbmm(start, x, y, beta=2, alpha=3)
    assert taeda.equal(found, 3 * want + 2)
