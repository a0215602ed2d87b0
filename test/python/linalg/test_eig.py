"""`eig` and `eigvals` of small matrices, by Eigen (two rows, real) or LAPACK: residuals
as small as LAPACK's, its order and conventions, its exact numbers in special cases."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch

DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [1, 2, 3, 4, 5, 8, 12, 13, 16, 17]
# Of n times the rounding unit. LAPACK's own residuals reach 5.
BOUND = 15


def numbers(dtype: str, *shape: int, seed: int = 0) -> numpy.ndarray:
    random = numpy.random.default_rng(seed)
    values = random.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.normal(size=shape)
    return values.astype(dtype)


def check(a: numpy.ndarray, t=None) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A V = V diag(w) up to rounding, columns of norm 1 whose largest number is real
    and positive; `eigvals` the same. Returns both results."""
    t = taeda.from_numpy(a.copy()) if t is None else t
    w, v = taeda.linalg.eig(t)
    single = t.dtype in (taeda.float32, taeda.complex64)
    assert w.dtype == v.dtype == (taeda.complex64 if single else taeda.complex128)
    assert tuple(w.shape) == a.shape[:-1]
    assert tuple(v.shape) == a.shape
    only = taeda.linalg.eigvals(t).numpy().astype("complex128")
    w, v = (x.numpy().astype("complex128") for x in (w, v))
    if a.size == 0:
        return w, v
    a, n = a.astype("complex128"), a.shape[-1]
    unit = 1.2e-7 if single else 2.3e-16
    size = numpy.maximum(numpy.linalg.norm(a, axis=(-2, -1)), 1e-100)
    residual = numpy.linalg.norm(a @ v - v * w[..., None, :], axis=(-2, -1)) / size
    assert residual.max() < BOUND * n * unit
    assert abs(numpy.linalg.norm(v, axis=-2) - 1).max() < 10 * unit
    # Sums and sums of squares: of each set of eigenvalues, the matrix's own traces.
    for values in (w, only):
        for power, matrix in ((1, a), (2, a @ a)):
            error = (values**power).sum(-1) - matrix.trace(axis1=-2, axis2=-1)
            assert (abs(error) / size**power).max() < BOUND * n * unit
    return w, v


@pytest.mark.parametrize("layout", ["plain", "transposed", "strided", "conjugate"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_residuals(dtype, n, layout) -> None:
    a = numbers(dtype, 3, 40, n, n, seed=n)
    t = taeda.from_numpy(a.copy())
    if layout == "transposed":
        t = t.mT.contiguous().mT
    elif layout == "strided":
        t = taeda.zeros(3, 80, 2 * n, n, dtype=t.dtype)[:, ::2, ::2].copy_(t)
    elif layout == "conjugate":
        t = t.conj().resolve_conj().conj()
    check(a, t)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (3, 3), (2, 1, 2, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes(dtype, shape) -> None:
    check(numbers(dtype, *shape))


@pytest.mark.parametrize("n", [3, 4, 9, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_number_of_an_eigenvector_is_real(dtype, n) -> None:
    w, v = check(numbers(dtype, 50, n, n, seed=3))
    largest = numpy.take_along_axis(v, abs(v).argmax(-2)[..., None, :], -2)[..., 0, :]
    chosen = numpy.ones_like(w, bool) if dtype[0] == "c" else w.imag != 0
    assert (abs(largest.imag)[chosen] < 1e-6).all()
    if dtype[0] != "c":
        # Pairs stand side by side, and real numbers have real vectors.
        first = w.imag > 0
        behind = numpy.roll(w, -1, -1)
        numpy.testing.assert_array_equal(w[first], behind[first].conj())
        assert not v.imag.swapaxes(-1, -2)[w.imag == 0].any()
        vectors = v.swapaxes(-1, -2)
        pairs = vectors[first], numpy.roll(vectors, -1, -2)[first].conj()
        numpy.testing.assert_array_equal(*pairs)


def special(n: int) -> dict[str, numpy.ndarray]:
    """Matrices by name, with whole numbers where their eigenvalues are exact."""
    shift = numpy.eye(n, k=1)
    rank_one = numpy.outer(numpy.arange(1, n + 1), numpy.ones(n))
    return {
        "zero": numpy.zeros((n, n)),
        "identity": numpy.eye(n),
        "ones": numpy.ones((n, n)),
        "one block": 2 * numpy.eye(n) + shift,
        "nilpotent": shift.T.copy(),
        "triangular": numpy.tril(rank_one + numpy.diag(numpy.arange(n))),
        "cycle": numpy.roll(numpy.eye(n), 1, 0),
        "rank one": rank_one,
        "turn": numpy.kron(numpy.eye(n // 2), [[0.0, -3.0], [3.0, 0.0]]),
        "symmetric": rank_one + rank_one.T,
        "defective and full": numpy.ones((n, n)) + n * shift,
        "cancelling": numpy.outer(numpy.ones(n), [1.0, -1.0] * (n // 2)),
    }


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("name", special(2))
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_matrices(dtype, name, n) -> None:
    matrix = special(n)[name].astype(dtype)
    w, _ = check(numpy.stack([matrix, 2 * matrix]))
    if name in ("zero", "identity", "one block", "nilpotent", "triangular"):
        expected = numpy.diagonal(matrix).astype("complex128")
        numpy.testing.assert_array_equal(numpy.sort(w[0]), numpy.sort(expected))


@pytest.mark.parametrize("n", [2, 3, 6, 12])
@pytest.mark.parametrize("dtype", DTYPES)
def test_badly_scaled_matrices_keep_their_eigenvalues(dtype, n) -> None:
    """D^-1 A D with D of powers of two has the eigenvalues of A."""
    a = numbers(dtype, 20, n, n, seed=5) + 4 * numpy.diag(numpy.arange(n)).astype(dtype)
    d = 2.0 ** numpy.linspace(-16, 16, n).round()
    scaled = (a / d[:, None] * d).astype(dtype)
    want = numpy.linalg.eigvals(a.astype("complex128"))
    size = abs(want).max()
    t = taeda.from_numpy(scaled)
    vectors_too = taeda.linalg.eig(t)[0].numpy()
    for got in (vectors_too, taeda.linalg.eigvals(t).numpy()):
        error = abs(got[:, :, None] - want[:, None]).min(-1).max()
        assert error < (1e-4 if dtype in ("float32", "complex64") else 1e-12) * size


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues_of_two_rows_come_in_the_order_of_pytorch(dtype) -> None:
    """From three rows on, two LAPACKs differ where whole numbers make ties."""
    a = numbers(dtype, 3000, 2, 2, seed=4)
    a[:500] = a[:500].real.round()
    a[500:1000, 0, 1] *= 1000
    want = torch.linalg.eigvals(torch.from_numpy(a)).numpy()
    size = numpy.linalg.norm(a, axis=(-2, -1))[:, None]
    t = taeda.from_numpy(a)
    for got in (taeda.linalg.eig(t)[0].numpy(), taeda.linalg.eigvals(t).numpy()):
        same = (abs(got - want) <= 0.01 * size).all(-1)
        assert same.all()


@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_very_large_and_very_small_numbers(dtype, n) -> None:
    single = dtype in ("float32", "complex64")
    a = numbers(dtype, 8, n, n, seed=2)
    for power in (100, -100, 60, -60) if single else (1000, -1000, 500, -500):
        t = taeda.from_numpy((a * 2.0**power).astype(dtype))
        w, v = taeda.linalg.eig(t)
        w, v = w.numpy().astype("complex128") * 2.0**-power, v.numpy()
        residual = a @ v.astype("complex128") - v * w[:, None]
        assert abs(residual).max() < (2e-5 if single else 4e-14) * n


@pytest.mark.parametrize("n", [2, 16, 17])
@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_that_are_not_finite_are_refused(dtype, value, n) -> None:
    """By `eigvals` too, where PyTorch's answer depends on its LAPACK: an array of
    anything, or no convergence."""
    a = numbers(dtype, 5, n, n)
    a[3, 1, 0] = value
    functions = (torch.linalg.eig, taeda.linalg.eig, taeda.linalg.eigvals)
    for library, function in zip((torch, taeda, taeda), functions, strict=True):
        with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
            function(library.from_numpy(a))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [2, 5, 16])
def test_gradients_equal_those_of_pytorch(n, dtype) -> None:
    """Of functions that do not depend on order and phase."""
    a = numbers(dtype, 6, n, n, seed=n)
    got = []
    for library in (taeda, torch):
        t = library.from_numpy(a.copy()).requires_grad_()
        w, v = library.linalg.eig(t)
        total = (w**3).sum().abs() + (v.abs() ** 4).sum()
        total = total + library.linalg.eigvals(t).abs().sum()
        got.append(library.autograd.grad(total, [t])[0].numpy())
    numpy.testing.assert_allclose(*got, rtol=1e-6, atol=1e-7 * abs(got[1]).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices_with_one_eigenvalue(dtype) -> None:
    """All small whole matrices of two rows, those with one eigenvector among them."""
    steps = numpy.arange(-6, 7)
    grid = numpy.stack(numpy.meshgrid(steps, steps, steps, steps), -1)
    a = grid.reshape(-1, 2, 2).astype(dtype)
    w, v = taeda.linalg.eig(taeda.from_numpy(a))
    w, v = w.numpy(), v.numpy()
    error = numpy.abs(a @ v - v * w[:, None, :]).max()
    assert error <= 12 * BOUND * numpy.finfo(dtype).eps


def test_eigenvalues_without_vectors_need_no_gradient_to_be_the_same() -> None:
    t = taeda.from_numpy(numbers("float64", 4, 5, 5)).requires_grad_()
    with_graph = taeda.linalg.eigvals(t)
    assert with_graph.requires_grad
    with taeda.no_grad():
        alone = taeda.linalg.eigvals(t)
    assert not alone.requires_grad
    expected, got = (
        numpy.sort_complex(x.detach().numpy().round(9)) for x in (with_graph, alone)
    )
    numpy.testing.assert_allclose(got, expected, atol=1e-8)
