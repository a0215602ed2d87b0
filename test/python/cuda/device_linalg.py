"""Linear algebra by cuSOLVER and cuBLAS, and by our own kernels, beside the CPU's."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import taeda
from taeda import linalg

Tensor = taeda.Tensor
DTYPES = (taeda.float32, taeda.float64, taeda.complex64, taeda.complex128)
choose = taeda.backends.cuda.preferred_linalg_library


@pytest.fixture(autouse=True)
def seeded() -> None:
    taeda.manual_seed(5)


@pytest.fixture(params=["cusolver", "default"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    choose(request.param)
    yield request.param
    choose("default")


def close(got: Tensor, want: Tensor, factor: float = 1) -> None:
    assert got.is_cuda and got.dtype == want.dtype and got.shape == want.shape
    few = want.dtype in (taeda.float32, taeda.complex64)
    within = (2e-4 if few else 1e-9) * factor
    there = got.cpu()
    if want.is_floating_point() or want.is_complex():
        assert taeda.allclose(there, want, rtol=within, atol=within), (there, want)
    else:
        assert taeda.equal(there, want)


def check(call: Callable, *tensors: Tensor) -> None:
    """Both sides agree, and the results lie alike."""
    want, got = call(*tensors), call(*(t.cuda() for t in tensors))
    if isinstance(want, Tensor):
        want, got = [want], [got]
    for there, here in zip(got, want, strict=True):
        close(there, here)
        assert there.stride() == here.stride()


def matrices(*sizes: int, dtype: taeda.dtype) -> Tensor:
    return taeda.randn(*sizes, dtype=dtype)


def definite(*sizes: int, dtype: taeda.dtype) -> Tensor:
    a = matrices(*sizes, dtype=dtype)
    return a @ a.mH + taeda.eye(sizes[-1], dtype=dtype)


SHAPES = [(5, 5), (2, 6, 3), (2, 3, 6), (3, 1, 4), (2, 2, 7, 7), (37, 35), (2, 33, 40)]
SQUARE = [(1, 1), (3, 5, 5), (2, 2, 9, 9), (36, 36)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_triangles_and_cholesky(library: str, dtype: taeda.dtype) -> None:
    for shape in SQUARE:
        a, whole = definite(*shape, dtype=dtype), matrices(*shape, dtype=dtype)
        b = matrices(*shape[:-1], 3, dtype=dtype)
        whole = whole + 4 * taeda.eye(shape[-1], dtype=dtype)
        for upper in (False, True):
            # The other triangle is not read.
            half = (a.triu() if upper else a.tril()).mT.contiguous().mT
            check(functools.partial(linalg.cholesky_ex, upper=upper), half)
            for unit in (False, True):
                small = whole / 4 if unit else whole
                options = {"upper": upper, "unitriangular": unit}
                left = functools.partial(linalg.solve_triangular, **options)
                check(left, small, b)
                check(functools.partial(left, left=False), small, b.mT)
        factor = linalg.cholesky(a)
        check(taeda.cholesky_solve, b, factor)
        check(taeda.cholesky_inverse, factor)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lu_and_what_it_solves(library: str, dtype: taeda.dtype) -> None:
    for shape in SHAPES:
        a = matrices(*shape, dtype=dtype)
        check(linalg.lu_factor_ex, a)
        check(linalg.lu_factor_ex, a.mT.contiguous().mT)
        check(linalg.lu, a)
    for shape in SQUARE:
        a = matrices(*shape, dtype=dtype) + 2 * taeda.eye(shape[-1], dtype=dtype)
        b = matrices(*shape[:-1], 3, dtype=dtype)
        check(linalg.solve_ex, a, b)
        check(lambda p, q: linalg.solve(p, q.mT, left=False), a, b)
        check(linalg.solve, a, b[..., 0])
        check(linalg.inv_ex, a)
        check(linalg.det, a / shape[-1] ** 0.5)
        check(linalg.slogdet, a)
        check(lambda p, q: linalg.lu_solve(*linalg.lu_factor(p), q), a, b)
        check(lambda p, q: linalg.solve(p.mH, q.conj()), a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reflections(library: str, dtype: taeda.dtype) -> None:
    for shape in SHAPES:
        a = matrices(*shape, dtype=dtype)
        for mode in ("reduced", "complete", "r"):
            check(lambda t, m=mode: linalg.qr(t, m), a)
        check(taeda.geqrf, a)
        packed, tau = taeda.geqrf(a)
        c = matrices(*shape[:-1], 2, dtype=dtype)
        if shape[-2] >= shape[-1]:
            check(linalg.householder_product, packed, tau)
            check(linalg.householder_product, packed, tau[..., :-1])
        for transpose in (False, True):
            for left in (True, False):
                check(
                    lambda p, t, o, s=left, h=transpose: taeda.ormqr(p, t, o, s, h),
                    packed,
                    tau,
                    c if left else c.mT,
                )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_least_squares(library: str, dtype: taeda.dtype) -> None:
    for shape in SHAPES:
        a, b = matrices(*shape, dtype=dtype), matrices(*shape[:-1], 2, dtype=dtype)
        got = linalg.lstsq(a.cuda(), b.cuda())
        want = linalg.lstsq(a, b, driver="gels")
        for there, here in zip(got, want, strict=True):
            close(there, here, factor=20)
    got = linalg.lstsq(a.cuda(), b.cuda(), driver="gelsd")
    close(got.rank, linalg.lstsq(a, b, driver="gelsd").rank)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hermitian_matrices(library: str, dtype: taeda.dtype) -> None:
    for shape in SQUARE:
        a = matrices(*shape, dtype=dtype)
        for uplo in "LU":
            check(lambda t, u=uplo: linalg.eigvalsh(t, UPLO=u), a)
            w, v = linalg.eigh(a.cuda(), UPLO=uplo)
            close(w, linalg.eigvalsh(a, UPLO=uplo))
            part = a.tril(-1) if uplo == "L" else a.triu(1)
            own = a.diagonal(0, -2, -1).real.to(dtype).diag_embed()
            close((v * w.unsqueeze(-2)) @ v.mH, part + part.mH + own)
            close(v.mH @ v, taeda.eye(shape[-1], dtype=dtype).expand(shape))
            assert v.stride() == linalg.eigh(a).eigenvectors.stride()


def orthonormal(m: Tensor) -> None:
    one = taeda.eye(m.shape[-1], dtype=m.dtype).expand(*m.shape[:-2], -1, -1)
    close(m.mH @ m, one)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_singular_values(library: str, dtype: taeda.dtype) -> None:
    for shape in SHAPES[:-1]:
        a = matrices(*shape, dtype=dtype)
        check(linalg.svdvals, a)
        for full in (False, True):
            u, s, vh = linalg.svd(a.cuda(), full_matrices=full)
            want = linalg.svd(a, full_matrices=full)
            for there, here in zip((u, s, vh), want, strict=True):
                assert there.shape == here.shape and there.stride() == here.stride()
            k = s.shape[-1]
            close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
            orthonormal(u)
            orthonormal(vh.mH)
    # Of lower rank, and zero.
    a = matrices(3, 6, 2, dtype=dtype) @ matrices(3, 2, 4, dtype=dtype)
    a[1] = 0
    u, s, vh = linalg.svd(a.cuda())
    close((u[..., :4] * s.unsqueeze(-2)) @ vh, a)
    orthonormal(u)
    orthonormal(vh.mH)


def test_singular_values_by_drivers() -> None:
    a = matrices(2, 4, 3, dtype=taeda.float64)
    for driver in ("gesvd", "gesvdj"):
        u, s, vh = linalg.svd(a.cuda(), full_matrices=False, driver=driver)
        close((u * s.unsqueeze(-2)) @ vh, a)
        close(linalg.svdvals(a.cuda(), driver=driver), linalg.svdvals(a))
    with pytest.raises(NotImplementedError, match="gesvda"):
        linalg.svd(a.cuda(), driver="gesvda")
    with pytest.raises(RuntimeError, match="unknown svd driver other"):
        linalg.svd(a.cuda(), driver="other")
    with pytest.raises(RuntimeError, match="only supported on CUDA"):
        linalg.svd(a, driver="gesvd")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_general_matrices(library: str, dtype: taeda.dtype) -> None:
    for shape in SQUARE:
        a = matrices(*shape, dtype=dtype)
        check(linalg.eigvals, a)
        w, v = linalg.eig(a.cuda())
        close(w, linalg.eigvals(a))
        close(a.cuda().to(v.dtype) @ v, (v * w.unsqueeze(-2)).cpu())
        lengths = taeda.linalg.vector_norm(v, dim=-2)
        close(lengths, taeda.ones(lengths.shape, dtype=lengths.dtype))


def test_gradients_are_the_cpus(library: str) -> None:
    def loss(a: Tensor) -> Tensor:
        p = a @ a.mT + taeda.eye(6, dtype=a.dtype, device=a.device)
        total = linalg.cholesky(p).sum() + linalg.inv(a).sum() + linalg.det(a).sum()
        total = total + linalg.eigh(p).eigenvalues.sum() + linalg.qr(a).R.sum()
        total = total + linalg.svdvals(a).sum() + linalg.solve(a, a[..., :2]).sum()
        return total + linalg.lstsq(a, a[..., :1]).solution.sum()

    here = matrices(2, 6, 6, dtype=taeda.float64).requires_grad_()
    there = here.detach().cuda().requires_grad_()
    loss(here).backward()
    loss(there).backward()
    close(there.grad, here.grad)


def error_of(call: Callable, *tensors: Tensor) -> tuple[type, str]:
    with pytest.raises(RuntimeError) as caught:
        call(*tensors)
    return type(caught.value), str(caught.value)


def test_what_cannot_be_done_is_said_as_on_the_cpu(library: str) -> None:
    zero, one = taeda.zeros(3, 4, 4), taeda.eye(4).expand(3, 4, 4).contiguous()
    one[1] = 0
    one[1, 0, 0] = 1
    for call, tensors in (
        (linalg.solve, (one, zero)),
        (lambda a: linalg.solve_ex(a, a, check_errors=True), (one,)),
        (linalg.inv, (one,)),
        (linalg.inv, (zero[0],)),
        (lambda a: linalg.inv_ex(a, check_errors=True), (one,)),
        (linalg.cholesky, (one,)),
        (lambda a: linalg.cholesky_ex(a, check_errors=True), (-one,)),
        (linalg.lu_factor, (one,)),
        (lambda a: linalg.lu_factor_ex(a, check_errors=True), (one,)),
        (linalg.eig, (one * float("nan"),)),
    ):
        want = error_of(call, *tensors)
        assert error_of(call, *(t.cuda() for t in tensors)) == want
    for call in (linalg.cholesky_ex, linalg.lu_factor_ex, linalg.inv_ex):
        got, want = call(one.cuda()).info, call(one).info
        assert got.is_cuda and taeda.equal(got.cpu(), want) and want.tolist() != [0] * 3


def test_factors_are_computed_in_the_current_stream() -> None:
    choose("cusolver")
    a = definite(2, 5, 5, dtype=taeda.float64).cuda()
    stream = taeda.cuda.Stream()
    stream.wait_event(taeda.cuda.current_stream().record_event())
    with stream:
        factor = linalg.cholesky_ex(a).L
    stream.synchronize()
    choose("default")
    close(factor, linalg.cholesky(a.cpu()))


def test_nothing_in_gives_nothing(library: str) -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        a = taeda.zeros(shape, dtype=taeda.float64)
        for call in (
            linalg.cholesky_ex,
            linalg.lu_factor_ex,
            linalg.inv_ex,
            linalg.det,
            linalg.qr,
            linalg.eigh,
            linalg.svd,
            linalg.svdvals,
            linalg.eig,
            lambda t: linalg.lstsq(t, t, driver="gels"),
        ):
            check(call, a) if call is not linalg.svd else call(a.cuda())


def test_choices_of_a_library() -> None:
    assert choose() == choose("default")
    assert choose("cusolver").name == "Cusolver" and choose() == choose("cusolver")
    with pytest.raises(RuntimeError, match="not been compiled with MAGMA"):
        choose("magma")
    assert choose().name == "Cusolver"
    choose("default")


LOST = """
import warnings
import taeda
warnings.simplefilter("always")
taeda.backends.cuda.preferred_linalg_library("cusolver")
a = taeda.randn(40, 40) + 9 * taeda.eye(40)
for _ in range(2):
    got = taeda.linalg.solve(a.cuda(), a.cuda())
    taeda.linalg.solve_triangular(a.cuda(), a.cuda(), upper=True)
print("right" if taeda.allclose(got.cpu(), taeda.eye(40), atol=1e-3) else "wrong")
"""


def test_without_the_libraries_our_kernels_run_and_one_line_says_so() -> None:
    missing = {
        "TAEDA_CUDA_CUSOLVER": "/nonexistent/libcusolver.so.12",
        "TAEDA_CUDA_CUBLAS": "/nonexistent/libcublas.so.13",
    }
    command = [sys.executable, "-c", LOST]
    done = subprocess.run(
        command, env=os.environ | missing, capture_output=True, text=True
    )
    assert done.stdout == "right\n", done.stderr
    assert done.stderr.count("libcusolver.so was not found") == 1
    assert "install the package nvidia-cusolver" in done.stderr
