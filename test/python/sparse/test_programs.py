"""Constructors and their errors, parts, printing: one line with both libraries."""

from __future__ import annotations

import pickle

import pytest
import taeda
import taeda.sparse
import torch
from sides import assert_same, attempt

pytestmark = pytest.mark.filterwarnings("ignore")

# S, C, B make tensors of layouts COO, CSR and BSR; x, c, d are of each kind.
LINES = """
S([[0, 5]], [1.0, 2.0], (2,))
S([[0, 5]], [1.0, 2.0], (2,), check_invariants=True)
S([[0, -1]], [1.0, 2.0], (2,), check_invariants=True)
S([[0, -1]], [1.0, 2.0])
S([0, 1], [1.0, 2.0], (2,))
S([[0, 1]], [1.0, 2.0, 3.0], (2,))
S([[0, 1]], [1.0, 2.0], (2, 3))
S([[0, 1]], [[1.0, 2.0]] * 2, (2, 3))
S([[0, 1]], 5.0, (2,))
S((2, 3))
S((2, 3), dtype=torch.int64)
S([[0, 0]], [1.0, 2.0], (2,), is_coalesced=True)
S([[0, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True)
S([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True)
S([[0, 1]], [1, 2], (2,), dtype=torch.float64, requires_grad=True)
S([[]], [], (2,))
S(torch.empty(1, 0), [], (2,))
S(torch.empty(2, 0), torch.empty(0, 3), (2, 2, 3))
S(torch.tensor([[0, 1]], dtype=torch.int32), [1.0, 2.0], (2,))
S([[0, 1]], torch.tensor([1.0, 2.0], requires_grad=True)).requires_grad
C([0, 1, 2], [0, 1], [1.0, 2.0])
C([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3))
C([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3))
C([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3), check_invariants=True)
C([1, 1, 2], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 1, 3], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 2, 1, 2], [0, 1], [1.0, 2.0], (3, 3), check_invariants=True)
C([0, 2, 2], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 2, 2], [1, 1], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 1], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 1, 2], [0, 1, 2], [1.0, 2.0], (2, 3), check_invariants=True)
C([0, 1, 2], [0, 1], [1.0, 2.0, 3.0], (2, 3), check_invariants=True)
C([0, 1, 2], [0, 1], [1.0, 2.0], (2,), check_invariants=True)
C(t([0.0, 1, 2]), t([0, 1]), t([1.0, 2.0]), (2, 3), check_invariants=True)
C(t([0, 1, 2]), t([0, 1], dtype=torch.int32), t([1.0, 2.0]), (2, 3))
C(t([0, 1], dtype=torch.int32), t([2], dtype=torch.int32), t([1.0]))
C([[0, 1, 2]] * 2, [[0, 1]] * 2, [[1.0, 2.0]] * 2)
B([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (4, 4))
B([0, 1, 2], [0, 1], torch.ones(2, 2, 2))
B([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (5, 4), check_invariants=True)
B([0, 1, 2], [0, 1], torch.ones(2), (4, 4), check_invariants=True)
torch.sparse_bsc_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 2))
torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.sparse_compressed_tensor([0, 1], [0], [1.0], layout=torch.sparse_coo)
torch.sparse_compressed_tensor([0, 1], [0], [1.0], layout=torch.sparse_csc)
x.indices()
x.values()
x.coalesce().indices()
x.coalesce().values()
x._indices()
x._values()
d.indices()
d.values()
d.crow_indices()
x.crow_indices()
c.ccol_indices()
c.crow_indices()
c.col_indices()
c.indices()
c.values()
d.coalesce()
c.coalesce()
c.is_coalesced()
d.is_coalesced()
x.is_coalesced()
x.coalesce().is_coalesced()
(x.coalesce() * 2).is_coalesced()
x.t().is_coalesced()
(d.sparse_dim(), d.dense_dim(), c.sparse_dim(), c.dense_dim(), x.sparse_dim())
(x._nnz(), c._nnz(), x.is_sparse, c.is_sparse, c.is_sparse_csr, x.layout, c.layout)
c.stride()
x.storage()
x.untyped_storage()
x.data_ptr()
x.numpy()
x.tolist()
x.item()
x + d
x + 1
x / d
x.cos()
x.exp()
x.view(6)
x[0:1]
torch.softmax(x, 0)
bool(x)
x.set_(d)
x.resize_(3, 3)
d.clone().copy_(x)
x.clone().copy_(d)
d.to_sparse(0)
d.to_sparse(1)
d.to_sparse(3)
d.to_sparse_bsr((2, 2))
d.to_sparse_csr(1)
d.to_sparse(layout=torch.sparse_bsr, blocksize=(1, 3))
d.to_sparse(layout=torch.sparse_bsr)
x.to_sparse(1)
c.to_sparse(1)
d.sparse_mask(d)
x.clone().sparse_resize_((4, 5), 2, 0)
x.clone().sparse_resize_((1, 5), 2, 0)
x.clone().sparse_resize_((4, 5, 2), 2, 1)
x.clone().sparse_resize_and_clear_((4, 5, 2), 2, 1)
x.clone().resize_as_(torch.ones(4, 5).to_sparse())
x.clone().resize_as_(torch.ones(1, 1).to_sparse())
x.clone().resize_as_(torch.ones(4, 5))
torch.ones(1, 1).resize_as_(x).shape
x.to_sparse_csr().resize_as_(torch.ones(4, 5).to_sparse_csr())
x.to_sparse_csr().resize_(5, 8)
x.to_sparse_csr().resize_(2, 1)
x.long().asin_()
torch.ones_like(x.to_sparse_csr())
x.to_sparse_csr().fill_(2.0)
x.clone().fill_(2.0)
x.permute(0, 0)
torch.stack([d, d * 2]).to_sparse_csr()[1]
torch.stack([d, d * 2]).to_sparse_csc().select(0, -1)
torch.stack([d, d * 2]).to_sparse_csr().select(1, 0)
torch.stack([d, d * 2]).to_sparse_csr().select(0, 2)
torch.stack([d, d * 2]).to_sparse_csr()[1, 0, 1]
torch.stack([d, d * 2], 2).to_sparse_csc(dense_dim=1).select(2, 1)
torch.stack([d, d * 2], 2).to_sparse_csr(dense_dim=1).select(0, 1)
torch.arange(32.0).view(2, 4, 4).to_sparse_bsr((2, 2))[1]
d.to_sparse_csc().select(0, 1).values()
x.unbind(1)[1]
c.unbind()[0]
torch.randn_like(x)
torch.randn_like(x.to_sparse_csr()).crow_indices()
x.to_sparse_csr().normal_().shape
x > 0
x != 0
torch.isnan(x)
torch.full_like(x, 2.0)
torch.full_like(x, 2.0, layout=torch.strided)
torch.full_like(x.to_sparse_csr(), 2.0)
torch.ones_like(x, layout=torch.strided)
torch.zeros(2, 3, layout=torch.sparse_coo)
torch.zeros(2, 3, layout=torch.sparse_coo).is_coalesced()
torch.zeros((2, 3), layout=torch.sparse_csr, dtype=torch.float64)
torch.empty(2, 2, 3, layout=torch.sparse_csc, requires_grad=True).requires_grad
torch.empty(0, layout=torch.sparse_csr)
torch.zeros(2, 2, layout=torch.sparse_bsr)
torch.zeros(2, 5, out=x.clone())
torch.rand(2, 2, layout=torch.sparse_coo)
torch.conj_physical(x.to(torch.complex64), out=x.to(torch.complex64))
torch.sparse_coo_tensor(size=(2, 3), dtype=torch.float64)
torch.sparse_coo_tensor()
S([[0, 1, 0], [1, 0, 1]], [1.0, 2, 3]).div_(37.5).to_dense()
x.sparse_mask(x)
d.to_sparse().sparse_mask(S([[0, 1, 0], [1, 0, 1]], [1.0, 2, 3], d.shape))
S([[0, 1, 0], [1, 0, 1]], [1.0, 2, 3], d.shape).sparse_mask(d.to_sparse())
x.new_ones(2, 3)
x.new_full((2, 3), 2.0, layout=torch.strided)
x.to_sparse_csr().new_ones(2, 3).shape
torch.ops.aten._sparse_sum.dim(d, [0])
bool(torch.sparse_coo_tensor([[0]], [2.0], (1,)))
x.sum().item()
torch.sparse_coo_tensor([[0, 0]], [-1.0, 1.0], (1,)).item()
torch.sparse_coo_tensor([[0, 0]], [-1.0, 1.0], (1,)).is_nonzero()
torch.sparse_coo_tensor([[1]], [3.0], (3,)).is_coalesced()
x.index_select(0, torch.tensor([-1, 0, -1]))
x.index_select(1, torch.tensor([-2]))
x.index_select(0, torch.tensor([0, 7]))
x.index_select(0, torch.tensor([-7]))
x.new_zeros(2, 3)
x.new_empty((4,), dtype=torch.int8)
x.new_zeros(2, layout=torch.strided)
torch.sparse_coo_tensor((3, 4)).coalesce().t().is_coalesced()
x.clone().copy_(x.narrow_copy(0, 0, 1))
torch.sparse_coo_tensor((3, 4, 2)) + torch.ones(3, 4, 2).to_sparse(1)
torch.ones(3, 4, 2).to_sparse(1) + torch.sparse_coo_tensor((3, 4, 2))
torch.sin(x, out=x.long())
x.long().to_sparse_csr().asin_()
x.clone().copy_(x * 2)
x.clone().zero_()
x.mm(d)
x.mm(d.double().t())
torch.sparse.spdiags(torch.arange(9.0).view(3, 3), t([0, -1, 1]), (3, 3))
torch.sparse.spdiags(torch.arange(6.0).view(2, 3), t([0, 0]), (3, 3))
torch.sparse.check_sparse_tensor_invariants.is_enabled()
len(x)
list(x)
x.numel()
x.is_floating_point()
x.requires_grad_().grad_fn
x.clone().asin_()
x.clone().neg_()
x.clone().log1p_()
x.coalesce().relu_()
x._coalesced_(False).is_coalesced()
torch.sparse_coo_tensor((3, 4))._coalesced_(False).is_coalesced()
d.to_sparse().permute(0, 1).is_coalesced()
d.to_sparse().permute(-2, -1).is_coalesced()
torch.empty_like(x, memory_format=torch.contiguous_format)
torch.zeros_like(x, memory_format=torch.preserve_format)
x.to_sparse(layout=torch.strided)
d.to_sparse(layout=torch.strided)
d.to_sparse(1).to_sparse_csr()
torch.ones(2, 2, 2).to_sparse().to_sparse_bsc((1, 1))
d.to_sparse_csr().to_sparse(1)
torch.sparse.sum(x, [0, 0])
d + torch.ones(1, 1).to_sparse()
x.mv(torch.ones(9))
torch.sparse.mm(x, x.double())
torch.cat([x, torch.ones(1, 1).to_sparse()])
torch._sparse_broadcast_to(x, (7, 7))
x.__setitem__(0, 1.0)
x.__setitem__(0, x)
c.__setitem__(0, 1.0)
x.clone().t_()
x.clone().transpose_(-1, 0)
x.clone().transpose_(0, 5)
torch.view_as_real(x.to(torch.complex64))
torch.view_as_real(x)
torch.view_as_complex(torch.view_as_real(x.to(torch.complex64)))
torch.ones(2, 3).sparse_mask(S([[0, 0, 1], [1, 1, 2]], [1.0, 2.0, 3.0], (2, 3)))
x.new_zeros((2, 3), layout=torch.sparse_csr)
x.new_zeros((2, 2, 3), layout=torch.sparse_csc)
x.new_zeros(3, layout=torch.sparse_csr)
x.new_zeros((2, 3), layout=torch.sparse_bsr)
torch.zeros_like(x, layout=torch.sparse_csc)
torch.sparse_coo_tensor((2, 3), device="meta").device.type
x.to("meta")._indices().shape
x.to("meta").is_coalesced()
(x.to("meta") + x.to("meta")).shape
x.to("meta").t().shape
torch.zeros_like(x.to("meta"))._nnz()
c.to("meta").crow_indices().shape
c.to("meta").values().shape
x.to("meta").to("cpu")
""".strip().splitlines()


def scope(library) -> dict:
    """The names of the lines."""
    make = library.sparse_coo_tensor
    return {
        "torch": library,
        "t": library.tensor,
        "S": make,
        "C": library.sparse_csr_tensor,
        "B": library.sparse_bsr_tensor,
        "x": make([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)),
        "c": library.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3)),
        "d": library.ones(2, 3),
    }


def phrase(error: Exception) -> str:
    """The words that programs match: before values and hints that differ."""
    return str(error).split("(")[0].split(" with arguments")[0].strip()[:40]


@pytest.mark.parametrize("line", LINES)
def test_line(line: str) -> None:
    """The same result and text, or an error of the same kind with the same words."""
    theirs, refused = attempt(lambda: eval(line, scope(torch)))
    ours, error = attempt(lambda: eval(line, scope(taeda)))
    if refused is None:
        assert error is None, f"{line}: {error!r}"
        assert_same(ours, theirs, line, 1e-6)
        return
    assert error is not None, f"{line}: {ours} and no {refused!r}"
    assert isinstance(error, (type(refused), NotImplementedError)), f"{line}: {error!r}"


MESSAGES = [
    line
    for line in LINES
    if line.startswith(("S(", "C(", "B(", "torch.sparse_")) or "indices" in line
]


@pytest.mark.parametrize("line", MESSAGES)
def test_words_of_errors(line: str) -> None:
    """Constructors and what asks for parts."""
    _, refused = attempt(lambda: eval(line, scope(torch)))
    _, error = attempt(lambda: eval(line, scope(taeda)))
    if refused is not None and not isinstance(
        refused, (TypeError, NotImplementedError)
    ):
        assert phrase(error) == phrase(refused)


PRINTED = """
x
x.coalesce()
x.double()
x.requires_grad_()
c
c.to_sparse_csc()
d.to_sparse_bsr((1, 3))
S((2, 3))
S((2, 0))
S([[0, 1]], torch.ones(2, 3), (4, 3))
S([list(range(50))], torch.arange(50.0), (100,))
d.to_sparse().half()
C([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3), dtype=torch.complex128)
x * 2
d.to_sparse_csr().requires_grad_() * 2
""".strip().splitlines()


@pytest.mark.parametrize("line", PRINTED)
def test_text(line: str) -> None:
    """Character by character."""
    ours = repr(eval(line, scope(taeda))).replace("taeda.", "torch.")
    assert ours == repr(eval(line, scope(torch)))


def test_counts() -> None:
    """Lines that are left out would go unnoticed."""
    assert (len(LINES), len(MESSAGES), len(PRINTED)) == (232, 70, 15)


def test_invariants_switch() -> None:
    """The switch, the context and the decorator."""
    check = taeda.sparse.check_sparse_tensor_invariants

    def make(**options):
        return taeda.sparse_coo_tensor([[7]], [1.0], (2,), **options)

    make()
    with check():
        assert check.is_enabled()
        with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
            make()
        make(check_invariants=False)
        with check(False):
            make()
    assert not check.is_enabled()
    with pytest.raises(RuntimeError, match="size is inconsistent"):
        check()(make)()
    check.enable()
    try:
        assert check.is_enabled()
    finally:
        check.disable()
    again = check()
    with again, again:
        assert check.is_enabled()
    assert not check.is_enabled()


def test_pickles_and_copies() -> None:
    """Layout, parts and order survive; a copy has parts of its own."""
    import copy

    for line in ("x", "x.coalesce()", "c", "d.to_sparse_bsc((1, 3))"):
        made = eval(line, scope(taeda))
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert again.layout is made.layout
            assert taeda.equal(again.to_dense(), made.to_dense())
        again._values().mul_(2)
        assert not taeda.equal(again.to_dense(), made.to_dense())


def test_decompositions_of_low_rank():
    dense = taeda.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
    for a in (dense, dense * (1 + 2j)):
        u, s, v = taeda.svd_lowrank(a.to_sparse(), q=3)
        assert taeda.allclose((u * s) @ v.mH, a, atol=1e-4)
    u, s, v = taeda.pca_lowrank(dense.to_sparse(), q=3)
    assert taeda.allclose((u * s) @ v.mH, dense - dense.mean(0), atol=1e-4)


def test_conjugates():
    x = taeda.tensor([[1 + 2j, 0], [0, 3 - 1j]]).to_sparse().requires_grad_()
    assert x.mH.to_dense().tolist() == x.detach().to_dense().mH.tolist()
    assert not x.conj().is_conj()
    x.conj().to_dense().imag.sum().backward()
    assert x.grad.to_dense().tolist() == [[-1j, 0], [0, -1j]]


@pytest.mark.parametrize("dense_dim", [1, -1, 2**63 - 1])
def test_two_dims_are_left_to_rows_and_columns(dense_dim):
    with pytest.raises(RuntimeError, match=f"two dims besides dense_dim={dense_dim}"):
        taeda.ones(2, 2).to_sparse_csc(dense_dim)
