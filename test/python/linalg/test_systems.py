"""LDL, least squares, products with Q, tensors as matrices, and the older names."""

import numpy as np
import pytest
import taeda
import torch

DTYPES = ["float64", "complex128"]


def _random(*shape, dtype="float64", seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * random.normal(size=shape)
    return x.astype(dtype)


def _both(*arrays):
    return [[t.tensor(a) for a in arrays] for t in (taeda, torch)]


def _same(got, want, tolerance=1e-10):
    got = got if isinstance(got, tuple) else (got,)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert tuple(a.shape) == tuple(b.shape), (a.shape, b.shape)
        assert str(a.dtype)[6:] == str(b.dtype)[6:]
        a, b = a.resolve_conj().numpy(), b.resolve_conj().numpy()
        assert np.allclose(a, b, tolerance, tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("batch", [(), (2,), (2, 0)])
def test_ldl(dtype, hermitian, batch) -> None:
    a = _random(*batch, 5, 5, dtype=dtype)
    turned = np.swapaxes(a, -1, -2)
    a = a + (turned.conj() if hermitian else turned)
    b = _random(5, 3, dtype=dtype, seed=1)
    (ta, tb), (wa, wb) = _both(a, b)
    factors = taeda.linalg.ldl_factor(ta, hermitian=hermitian)
    _same(tuple(factors), tuple(torch.linalg.ldl_factor(wa, hermitian=hermitian)))
    assert type(factors).__name__ == "linalg_ldl_factor"
    x = taeda.linalg.ldl_solve(*factors, tb, hermitian=hermitian)
    assert np.allclose(a @ x.numpy(), np.broadcast_to(b, x.shape))


def test_ldl_of_a_singular_matrix() -> None:
    with pytest.raises(taeda.linalg.LinAlgError):
        taeda.linalg.ldl_factor(taeda.zeros(2, 2))
    assert taeda.linalg.ldl_factor_ex(taeda.zeros(2, 2)).info != 0


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (0, 3), (60, 40)])
def test_least_squares(driver, dtype, shape) -> None:
    a = _random(*shape, dtype=dtype)
    b = _random(*shape[:-1], 2, dtype=dtype, seed=1)
    (ta, tb), (wa, wb) = _both(a, b)
    got = taeda.linalg.lstsq(ta, tb, driver=driver)
    _same(tuple(got), tuple(torch.linalg.lstsq(wa, wb, driver=driver)))
    got = taeda.linalg.lstsq(ta, tb[..., 0], driver=driver)
    _same(tuple(got), tuple(torch.linalg.lstsq(wa, wb[..., 0], driver=driver)))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
@pytest.mark.parametrize(
    "shape", [(5, 3), (3, 5), (2, 5, 3), (1, 5, 3), (5, 0), (0, 3)]
)
def test_least_squares_leave_rows_behind_their_solutions(driver, shape) -> None:
    (ta, tb), (wa, wb) = _both(_random(*shape), _random(*shape[:-1], 2, seed=1))
    for column in (False, True):
        b, w = (tb[..., 0], wb[..., 0]) if column else (tb, wb)
        got = taeda.linalg.lstsq(ta, b, driver=driver)
        want = torch.linalg.lstsq(wa, w, driver=driver)
        assert [t.stride() for t in got] == [t.stride() for t in want]


def test_least_squares_derivatives_and_errors() -> None:
    a = taeda.tensor(_random(4, 3), requires_grad=True)
    b = taeda.tensor(_random(4, 2, seed=1), requires_grad=True)
    for driver in ("gels", "gelsd"):

        def call(a, b, driver=driver):
            return taeda.linalg.lstsq(a, b, driver=driver)[:2]

        assert taeda.autograd.gradcheck(call, (a, b))
        assert taeda.autograd.gradgradcheck(call, (a, b))
    with pytest.raises(taeda.linalg.LinAlgError):
        flat = taeda.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
        taeda.linalg.lstsq(flat, taeda.ones(3, 1), driver="gels")
    for bad in [
        {"driver": "no"},
        {"b": taeda.ones(4, 1)},
        {"b": taeda.ones(3, 1).double()},
    ]:
        with pytest.raises(RuntimeError):
            taeda.linalg.lstsq(taeda.ones(3, 2), **{"b": taeda.ones(3, 1), **bad})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_q(dtype, left, transpose) -> None:
    for batch in [(), (2,), (0,)]:
        a = _random(*batch, 5, 3, dtype=dtype)
        c = _random(*batch, *((5, 4) if left else (4, 5)), dtype=dtype, seed=1)
        (ta, tc), (wa, wc) = _both(a, c)
        got = taeda.ormqr(*taeda.geqrf(ta), tc, left, transpose)
        _same(got, torch.ormqr(*torch.geqrf(wa), wc, left, transpose))
    packed, tau = (t.requires_grad_() for t in taeda.geqrf(taeda.tensor(_random(4, 3))))
    c = taeda.tensor(_random(4, 4, seed=1), requires_grad=True)
    assert taeda.autograd.gradcheck(
        lambda p, t, c: taeda.ormqr(p.tril(-1), t, c, left, transpose), (packed, tau, c)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_condition_numbers(dtype) -> None:
    inf = float("inf")
    (got,), (want,) = _both(_random(2, 3, 3, dtype=dtype))
    for p in (None, 2, -2, 1, -1, inf, -inf, "fro", "nuc"):
        _same(taeda.linalg.cond(got, p), torch.linalg.cond(want, p))
        for t, zero in ((taeda, taeda.zeros(2, 2)), (torch, torch.zeros(2, 2))):
            assert t.isnan(t.linalg.cond(zero, p)) or t.linalg.cond(zero, p) == inf
        empty = taeda.linalg.cond(taeda.zeros(3, 0, 0), p)
        assert empty.tolist() == [0, 0, 0]
    for bad in (3, "no"):
        with pytest.raises(RuntimeError):
            taeda.linalg.cond(got, bad)


def test_tensors_as_matrices() -> None:
    (a, b), (wa, wb) = _both(_random(2, 3, 6), _random(2, 3, seed=1))
    _same(taeda.linalg.tensorsolve(a, b), torch.linalg.tensorsolve(wa, wb))
    _same(taeda.linalg.tensorinv(a), torch.linalg.tensorinv(wa))
    moved = a.permute(2, 0, 1)
    assert taeda.allclose(
        taeda.linalg.tensorsolve(moved, b, dims=(0,)), taeda.linalg.tensorsolve(a, b)
    )
    for bad in (
        lambda: taeda.linalg.tensorinv(a, 1),
        lambda: taeda.linalg.tensorinv(a, 0),
    ):
        with pytest.raises(RuntimeError):
            bad()


def test_powers() -> None:
    for values in ([1.0, 2.0, 3.0], [[1, 2], [3, 4]], 2):
        for n in (None, 2, 5):
            got, want = (
                (
                    t.linalg.vander(t.tensor(values), N=n)
                    if n or values != 2
                    else t.ones(1)
                )
                for t in (taeda, torch)
            )
            _same(got, want)
    with pytest.raises(RuntimeError):
        taeda.linalg.vander(taeda.ones(3), N=1)


@pytest.mark.parametrize("n", [-(2**63), -(2**63) + 1, 2**63 - 1, -3, -1, 1, 2])
def test_powers_of_matrices(n) -> None:
    swap = [[0.0, 1.0], [1.0, 0.0]]
    want = swap if n % 2 else [[1.0, 0.0], [0.0, 1.0]]
    assert taeda.linalg.matrix_power(taeda.tensor(swap), n).tolist() == want


@pytest.mark.parametrize("dtype", DTYPES)
def test_older_names(dtype) -> None:
    for shape in [(4, 3), (2, 3, 4)]:
        x = taeda.tensor(_random(*shape, dtype=dtype))
        for some in (True, False):
            u, s, v = taeda.svd(x, some)
            k = min(shape[-2:])
            again = u[..., :k] @ taeda.diag_embed(s).to(x.dtype) @ v[..., :k].mH
            assert taeda.allclose(again, x)
            q, r = taeda.qr(x, some)
            assert taeda.allclose(q @ r, x)
            assert q.shape[-1] == (k if some else shape[-2])
        u, s, v = x.svd(compute_uv=False)
        assert not u.any() and not v.any() and u.shape[-1] == shape[-2]
        assert taeda.allclose(s, taeda.linalg.svdvals(x))
