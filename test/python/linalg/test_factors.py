"""Factorisations, determinants, eigenvalues and quantiles equal PyTorch's."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch


def close(got, want, tolerance: float = 1e-9) -> None:
    """Each result of the one within the tolerance of the other's."""
    got = got if isinstance(got, (tuple, list)) else [got]
    want = want if isinstance(want, (tuple, list)) else [want]
    for g, w in zip(got, want, strict=True):
        g, w = (t.detach().resolve_conj().numpy() for t in (g, w))
        assert g.dtype == w.dtype
        numpy.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def values(name: str):
    """Matrices by name: general, positive-definite, complex, Hermitian, right side."""
    random = numpy.random.default_rng(3)
    a = random.normal(size=(2, 4, 4))
    z = random.normal(size=(3, 3)) + 1j * random.normal(size=(3, 3))
    return {
        "a": a,
        "s": a @ a.swapaxes(-1, -2) + numpy.eye(4),
        "z": z,
        "h": z @ z.conj().T + numpy.eye(3),
        "b": random.normal(size=(4, 2)),
        "x": random.normal(size=(5, 6)),
        "tall": a[:, :, :2],
    }[name]


FORWARD = {
    "cholesky": ("s", lambda t, s: t.linalg.cholesky(s)),
    "cholesky upper": ("h", lambda t, h: t.linalg.cholesky(h, upper=True)),
    "cholesky_ex": ("s", lambda t, s: t.linalg.cholesky_ex(-s)[1]),
    "cholesky_inverse": ("s", lambda t, s: t.cholesky_inverse(s.cholesky())),
    "cholesky_solve": ("bs", lambda t, b, s: t.cholesky_solve(b, s.cholesky())),
    "triangular": (
        "sb",
        lambda t, s, b: t.linalg.solve_triangular(s, b, upper=True),
    ),
    "triangular right": (
        "sb",
        lambda t, s, b: t.linalg.solve_triangular(
            s, b.mT, upper=False, left=False, unitriangular=True
        ),
    ),
    "lu": ("a", lambda t, a: tuple(t.linalg.lu(a))),
    "lu_factor_ex": ("a", lambda t, a: tuple(t.linalg.lu_factor_ex(a))),
    "lu_solve": (
        "ab",
        lambda t, a, b: t.linalg.lu_solve(
            *t.linalg.lu_factor(a), b.mT.expand(2, 2, 4), left=False, adjoint=True
        ),
    ),
    "det": ("a", lambda t, a: t.linalg.det(a)),
    "slogdet": ("z", lambda t, z: tuple(t.slogdet(z))),
    "logdet": ("a", lambda t, a: a.logdet()),
    "eigvalsh": ("h", lambda t, h: t.linalg.eigvalsh(h)),
    "eigvals": ("a", lambda t, a: t.linalg.eigvals(a).abs().sort()[0]),
    "inv_ex": ("a", lambda t, a: tuple(t.linalg.inv_ex(a))),
    "solve_ex": ("ab", lambda t, a, b: tuple(t.linalg.solve_ex(a, b.expand(2, 4, 2)))),
    "pinv": ("tall", lambda t, a: t.linalg.pinv(a)),
    "pinv hermitian": ("s", lambda t, s: t.linalg.pinv(s, hermitian=True)),
    "matrix_rank": ("tall", lambda t, a: t.linalg.matrix_rank(a @ a.mT)),
    "matrix_power": ("a", lambda t, a: t.linalg.matrix_power(a, -2)),
    "matrix_power method": ("a", lambda t, a: a.matrix_power(-3)),
    "cross": ("a", lambda t, a: t.linalg.cross(a[:, :3], a[:, 1:], dim=1)),
    "vecdot": ("z", lambda t, z: t.linalg.vecdot(z, z.mT)),
    "cov": ("x", lambda t, x: x.cov(aweights=x[0].abs())),
    "corrcoef": ("x", lambda t, x: x.corrcoef()),
}
GRADIENTS = {
    **{k: FORWARD[k] for k in ("cholesky", "cholesky upper", "cholesky_solve")},
    **{k: FORWARD[k] for k in ("triangular", "triangular right", "det", "logdet")},
    **{k: FORWARD[k] for k in ("eigvalsh", "pinv", "cross", "corrcoef", "eigvals")},
    # Of the whole factor, the triangle that nothing reads too; of cotangents that are
    # not Hermitian.
    "solve by factor": ("bs", lambda t, b, s: t.cholesky_solve(b, s, upper=True)),
    "inverse by factor": ("s", lambda t, s: t.cholesky_inverse(s)),
    "matrix_power": ("a", lambda t, a: t.matrix_power(a, -2)),
    "cholesky complex": ("h", lambda t, h: (t.linalg.cholesky(h) * (1 + 2j)).imag),
    "lu": ("a", lambda t, a: tuple(t.linalg.lu(a)[1:])),
    "det complex": ("z", lambda t, z: t.linalg.det(z)),
    "slogdet": ("z", lambda t, z: t.linalg.slogdet(z)[1]),
    "eigh": ("s", lambda t, s: t.linalg.eigh(s)[1].abs()),
    "eig": ("a", lambda t, a: t.linalg.eig(a)[1].abs().sum()),
    "quantile": ("x", lambda t, x: x.quantile(0.3, dim=1)),
}


def inputs(names: str, library):
    """The named matrices as tensors of a library."""
    keys = [names] if names == "tall" else list(names)
    return [library.from_numpy(values(key)) for key in keys]


@pytest.mark.parametrize("name", FORWARD)
def test_values(name) -> None:
    names, function = FORWARD[name]
    close(
        function(taeda, *inputs(names, taeda)), function(torch, *inputs(names, torch))
    )


def gradients(library, names: str, function) -> list:
    """Gradients of a weighted sum of the magnitudes of what a function returns."""
    leaves = [t.requires_grad_() for t in inputs(names, library)]
    results = function(library, *leaves)
    results = results if isinstance(results, tuple) else (results,)
    total = 0
    for result in results:
        weights = library.arange(1, result.numel() + 1, dtype=library.float64)
        parts = result.abs() if result.is_complex() else result
        total = total + (parts.reshape(-1) * weights).sum()
    return list(library.autograd.grad(total, leaves))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name) -> None:
    names, function = GRADIENTS[name]
    close(gradients(taeda, names, function), gradients(torch, names, function), 1e-7)


def test_determinant_of_a_singular_matrix_has_its_cofactors_as_gradient() -> None:
    a = taeda.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    taeda.linalg.det(a).backward()
    numpy.testing.assert_allclose(a.grad, [[4, -2], [-2, 1]], atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name, kind) -> None:
    x = values("x").astype("float32")
    x[0, 0] = numpy.nan
    results = []
    for library in (taeda, torch):
        function, t = getattr(library, name), library.from_numpy(x)
        q = library.tensor([0.1, 0.6])
        results.append(
            [
                function(t, q, dim=0, keepdim=True, interpolation=kind),
                function(t, 0.3, dim=1, interpolation=kind),
                function(t, 0.7, interpolation=kind),
            ]
        )
    close(*results, 1e-6)


def test_not_positive_definite() -> None:
    messages = []
    for library in (taeda, torch):
        with pytest.raises(library.linalg.LinAlgError) as caught:
            library.linalg.cholesky(-library.eye(2).expand(3, 2, 2))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_no_inverse_by_a_singular_factor(upper, dtype, batch) -> None:
    messages = []
    for library in (taeda, torch):
        factor = library.eye(3, dtype=getattr(library, dtype)).repeat(*batch, 1, 1)
        factor[(-1,) * len(batch)][1, 1] = 0
        with pytest.raises(library.linalg.LinAlgError) as caught:
            library.cholesky_inverse(factor, upper=upper)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert taeda.cholesky_inverse(taeda.ones(2, 2, device="meta")).shape == (2, 2)
    assert taeda.cholesky_inverse(taeda.ones(2, 0, 0)).shape == (2, 0, 0)
    singular = taeda.tensor([[[1.0, 0], [1, 2]], [[1, 0], [1, 0]]])
    with pytest.raises(taeda.linalg.LinAlgError, match=r"element 1\): .* element 2"):
        taeda.vmap(taeda.cholesky_inverse)(singular)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(("size", "count"), [(3, 1), (40, 1), (4, 300)])
def test_nan_is_not_positive_definite(dtype, upper, size, count) -> None:
    """In a batch, of small matrices also, the first matrix with a NaN is named."""
    messages, reports = [], []
    for library in (taeda, torch):
        a = library.eye(size, dtype=getattr(library, dtype)).repeat(count, 1, 1)
        a[count // 2, 2, 2] = float("nan")
        a = a[0] if count == 1 else a
        with pytest.raises(library.linalg.LinAlgError) as caught:
            library.linalg.cholesky(a, upper=upper)
        messages.append(str(caught.value))
        reports.append(library.linalg.cholesky_ex(a, upper=upper).info.tolist())
    assert messages[0] == messages[1] and reports[0] == reports[1]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.complex64])
@pytest.mark.parametrize("shape", [(40, 40), (40, 25), (2, 20, 30), (300, 4, 4)])
def test_values_without_vectors(dtype, shape):
    a = taeda.randn(*shape, dtype=dtype, generator=taeda.Generator().manual_seed(3))
    near = 1e-10 if dtype == taeda.float64 else 1e-4
    values = taeda.linalg.svdvals(a)
    taeda.testing.assert_close(values, taeda.linalg.svd(a).S, rtol=near, atol=near)
    product = a @ a.mH
    for uplo in "LU":
        given = product.tril() if uplo == "L" else product.triu()
        own = taeda.linalg.eigvalsh(given, UPLO=uplo)
        want = taeda.linalg.eigh(product).eigenvalues
        taeda.testing.assert_close(own, want, rtol=near, atol=10 * near)
    assert taeda.equal(taeda.linalg.svdvals(a, out=values.clone()), values)
    a.requires_grad_()
    (gradient,) = taeda.autograd.grad(taeda.linalg.svdvals(a).sum(), a)
    parts = taeda.linalg.svd(a.detach(), full_matrices=False)
    taeda.testing.assert_close(gradient, parts.U @ parts.Vh, rtol=near, atol=near)
