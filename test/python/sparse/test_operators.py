"""Operators on sparse tensors, layout by layout and dtype by dtype."""

from __future__ import annotations

import pytest
import taeda
import torch
from sides import DTYPES, LAYOUTS, assert_same, attempt, names, tolerance_of

pytestmark = pytest.mark.filterwarnings("ignore")

OPERATORS = """
x.to_dense()
x.to_sparse()
x.to_sparse_csr()
x.to_sparse_csc()
x.to_sparse_bsr((2, 3))
x.to_sparse_bsc((2, 2))
x.clone()
x.detach()
x.to(torch.float64)
x.to(torch.complex128)
-x
x * 2
x / 2
x * torch.tensor(3)
x * d
d * x
x * x
x + x
x - x
x + 2 * x
d + x
d - x
torch.add(x, x, alpha=2)
torch.add(d, x, alpha=2)
x.clone().add_(x)
x.clone().mul_(2)
d.clone().add_(x)
d.clone().add_(x, alpha=2)
d.clone().sub_(x)
x.zero_()
torch.zeros_like(x)
abs(x)
x.sin()
x.asinh()
x.expm1()
x.sqrt()
x.sgn()
x.pow(2)
x.isnan()
x.floor()
torch.relu(x)
x.clone().sin_()
x.sum()
x.sum(0)
x.sum(1)
x.sum((0, 1))
x.sum(1, keepdim=True)
x.norm()
torch.sparse.sum(x)
torch.sparse.sum(x, 0)
torch.sparse.sum(x, (0, 1))
torch.sparse.softmax(x, 0)
torch.sparse.softmax(x, 1)
torch.sparse.log_softmax(x, 1)
x.t()
x.transpose(0, 1)
x.unsqueeze(0)
x.unsqueeze(-1)
x.permute(1, 0)
x[1]
x[:, 1]
x[1, 2]
x.select(0, -1)
x.index_select(0, i)
x.index_select(1, i)
torch.cat([x, x])
torch.cat([x, x], 1)
torch.stack([x, x])
d.sparse_mask(x)
x.sparse_mask(x)
x @ w
x.mm(w)
x @ v
x.mv(v)
u @ x
torch.mm(u, x)
x.t() @ d
x @ x.t()
torch.sparse.mm(x, w)
torch.sparse.mm(x, x.t())
torch.addmm(w[:4], x, w)
torch.addmm(w[:4], x, w, beta=2, alpha=3)
torch.sparse.addmm(w[:4], x, w, beta=2, alpha=3)
torch.sparse.sampled_addmm(x, w[:4], u[:, :3].repeat(1, 2), beta=2)
torch.sparse.mm(x, w, "sum")
torch.sparse.mm(x, w, "mean")
torch.sparse.mm(x, w, "amax")
torch.hspmm(x, w)
torch.smm(x, w)
torch.bmm(torch.stack([x, x]), torch.stack([w, w]))
""".strip().splitlines()

# Gradients by x and, where it is named, by d or w.
GRADIENTS = """
x.to_dense()
x.to_dense(masked_grad=False)
x.coalesce().values()
x.values()
x.to_sparse().to_dense()
x * 2
x / 2
-x
x + x
d + x
x.t()
x.clone()
x.sum()
x @ w
x @ v
u @ x
torch.sparse.mm(x, w)
torch.addmm(w[:4], x, w, beta=2, alpha=3)
torch.sparse.addmm(w[:4], x, w, beta=2, alpha=3)
torch.sparse.mm(x, x.t())
torch.relu(x)
torch.log1p(abs(x))
torch.sparse.sum(x, 0)
torch.sparse.sum(x, (0, 1))
torch.sparse.softmax(x, 1)
torch.sparse.log_softmax(x, 0)
torch.sparse.mm(x, w, "sum")
torch.sparse.mm(x, w, "mean")
torch.sparse.mm(x, w, "amax")
d.to_sparse()
d.to_sparse_csr()
d.to_sparse_bsr((2, 3))
d.sparse_mask(x.detach())
torch.sparse_coo_tensor(x.detach()._indices(), x.detach()._values().requires_grad_())
""".strip().splitlines()


# Cells that PyTorch computes, by layout; a suite that skips some fails.
CELLS = dict(zip(LAYOUTS, (463, 460, 374, 311, 270, 213, 198), strict=True))
GRADIENT_CELLS = dict(zip(LAYOUTS, (31, 30, 20, 25, 9, 5, 5), strict=True))


def compare(operator: str, layout: str, dtype: str) -> bool:
    """Whether PyTorch computes the cell; asserts that ours is the same then."""
    theirs, refused = attempt(lambda: eval(operator, names(torch, layout, dtype)))
    if refused is not None:
        return False
    what = f"{operator} [{layout}, {dtype}]"
    ours, error = attempt(lambda: eval(operator, names(taeda, layout, dtype)))
    assert error is None, f"{what}: {error!r}"
    assert_same(ours, theirs, what, tolerance_of(dtype))
    return True


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_agree(layout: str) -> None:
    """Where PyTorch has a result, this is it; what only we have is not counted."""
    cells = [(operator, dtype) for operator in OPERATORS for dtype in DTYPES]
    count = sum(compare(operator, layout, dtype) for operator, dtype in cells)
    assert count == CELLS[layout]


def gradients(library, operator: str, layout: str):
    """The gradients of a weighted sum by every leaf of the expression."""
    given = names(library, layout, "float64")
    leaves = [given[name].requires_grad_() for name in "xdw"]
    result = eval(operator, given)
    if result.layout is not library.strided:
        result = result.to_dense()
    weight = library.arange(result.numel(), dtype=library.float64) % 3 + 1
    (result * weight.reshape(result.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def compare_gradients(operator: str, layout: str) -> bool:
    """Whether PyTorch has gradients; asserts that ours are the same then."""
    theirs, refused = attempt(lambda: gradients(torch, operator, layout))
    if refused is not None:
        return False
    ours = gradients(taeda, operator, layout)
    for name, a, b in zip("xdw", ours, theirs, strict=True):
        what = f"gradient of {operator} by {name} [{layout}]"
        assert (a is None) == (b is None), what
        if b is not None:
            assert str(a.layout)[6:] == str(b.layout)[6:], what
            assert_same(a.to_dense(), b.to_dense(), what, 1e-13)
    return True


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_agree(layout: str) -> None:
    """Layouts too; PyTorch's keep some zeros as entries that ours do not have."""
    count = sum(compare_gradients(operator, layout) for operator in GRADIENTS)
    assert count == GRADIENT_CELLS[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["relu", "log1p", "tanh", "sin", "expm1", "sqrt"])
def test_gradients_at_entries(layout: str, name: str) -> None:
    """What the derivative of strided tensors says, where the gradient has entries."""
    given = names(taeda, layout, "float64")
    x = given["x"].abs().requires_grad_()
    strided = given["x"].to_dense().abs().requires_grad_()
    weight = taeda.arange(strided.numel(), dtype=taeda.float64).reshape(x.shape) - 3
    function = getattr(taeda, name)
    (function(x).to_dense() * weight).sum().backward()
    (function(strided) * weight).sum().backward()
    entries = taeda.ones_like(strided).sparse_mask(x.detach())
    assert x.grad.layout is x.layout
    expected = strided.grad.masked_fill(entries.to_dense() == 0, 0)
    taeda.testing.assert_close(x.grad.to_dense(), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("other", ["uint8", "int8", "int64"])
def test_differences_are_computed_in_the_dtype_of_the_result(other: str) -> None:
    for lib in (taeda, torch):
        a = lib.tensor([3, 0, -5], dtype=lib.int8).to_sparse()
        b = lib.tensor([7, 2, 0], dtype=getattr(lib, other)).to_sparse()
        assert (a - b).to_dense().tolist() == [-4, -2, -5]
        assert a.sub_(b).to_dense().tolist() == [-4, -2, -5]


@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dense_tensors_times_sparse_ones_in_place(coalesced, dtype):
    results = []
    for library in (taeda, torch):
        places = library.tensor([[0, 0, 2]])
        numbers = library.tensor([1.0, 2.0, 3.0], dtype=getattr(library, dtype))
        sparse = library.sparse_coo_tensor(places, numbers, (3,))
        sparse = sparse.coalesce() if coalesced else sparse
        dense = library.tensor([2.0, 3.0, 4.0], dtype=library.float32)
        assert dense.mul_(sparse) is dense
        results.append(dense.tolist())
    assert results[0] == results[1] == [6, 0, 12]
