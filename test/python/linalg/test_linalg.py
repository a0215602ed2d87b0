"""Matrices: decompositions rebuild them, everything else equals PyTorch."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch
from tolerance import rounding

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 5, 3), (0, 3), (3, 0), (0, 2, 2)]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(shape, dtype="float64", seed=0):
    random = numpy.random.default_rng(seed)
    values = random.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.normal(size=shape)
    return values.astype(dtype)


def limit(dtype) -> float:
    """Of one step, a few dozen roundings one after the other."""
    return rounding(dtype, 64)


def close(got, want, dtype="float64", steps: int = 10) -> None:
    """Equal but for `limit` in each of some `steps` of the computation."""
    numpy.testing.assert_allclose(
        got.detach().resolve_conj().numpy(),
        want.detach().resolve_conj().numpy() if hasattr(want, "detach") else want,
        rtol=0,
        atol=limit(dtype) * steps,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(shape, dtype, mode) -> None:
    a = matrices(shape, dtype)
    q, r = taeda.linalg.qr(taeda.from_numpy(a), mode=mode)
    wants = torch.linalg.qr(torch.from_numpy(a), mode=mode)
    for got, want in zip((q, r), wants, strict=True):
        assert got.shape == tuple(want.shape)
        close(got, want, dtype)
    if mode != "r":
        close(q @ r, a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full) -> None:
    a = matrices(shape, dtype)
    u, s, vh = taeda.linalg.svd(taeda.from_numpy(a), full_matrices=full)
    want = torch.linalg.svd(torch.from_numpy(a), full_matrices=full)
    assert [tuple(t.shape) for t in want] == [u.shape, s.shape, vh.shape]
    close(s, want.S, dtype)
    close(taeda.linalg.svdvals(taeda.from_numpy(a)), want.S, dtype)
    k = s.shape[-1]
    close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, dtype)
    for t in (u, vh.mH):
        if t.numel():
            product = t.mH @ t
            one = numpy.broadcast_to(numpy.eye(t.size(-1)), product.shape)
            close(product, one, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(
    "a, b", [((3, 3), (3, 2)), ((2, 1, 3, 3), (4, 3, 3)), ((0, 0), (0, 2))]
)
def test_solve(a, b, left, dtype) -> None:
    if not left:
        b = (*b[:-2], b[-1], b[-2])
    values = matrices(a, dtype), matrices(b, dtype, 1)
    got = taeda.linalg.solve(*map(taeda.from_numpy, values), left=left)
    want = torch.linalg.solve(*map(torch.from_numpy, values), left=left)
    close(got, want, dtype)


def test_solve_vectors_and_inverse() -> None:
    a, b = matrices((2, 3, 3)), matrices((2, 3))
    for m in (taeda, torch):
        x = m.linalg.solve(m.from_numpy(a), m.from_numpy(b))
        numpy.testing.assert_allclose(
            (a @ x.numpy()[..., None])[..., 0], b, rtol=0, atol=10 * limit("float64")
        )
    close(taeda.inverse(taeda.from_numpy(a)), numpy.linalg.inv(a))
    close(taeda.linalg.inv(taeda.from_numpy(a)), numpy.linalg.inv(a))


NORMS = ["fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf")]


@pytest.mark.parametrize("order", NORMS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms(order, keepdim) -> None:
    a = matrices((2, 3, 4), "complex128")
    for dims in ((-2, -1), (2, 0), (0, 1)):
        got, want = (
            m.linalg.matrix_norm(m.from_numpy(a), order, dims, keepdim)
            for m in (taeda, torch)
        )
        close(got, want)
        assert got.shape == tuple(want.shape)
    got, want = (m.linalg.norm(m.from_numpy(a[0]), order) for m in (taeda, torch))
    close(got, want)


def test_norm_of_vectors_and_of_everything() -> None:
    a = matrices((3, 4))
    for args in ((), (None, 1), (3, 0), (float("inf"), -1), ("fro", (0, 1))):
        got, want = (m.linalg.norm(m.from_numpy(a), *args) for m in (taeda, torch))
        close(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 20.0])
def test_matrix_exponential(dtype, scale) -> None:
    a = matrices((2, 3, 3), dtype)
    a = ((a - a.conj().swapaxes(-1, -2)) * scale).astype(dtype)  # |exp(a)| is 1
    close(
        taeda.matrix_exp(taeda.from_numpy(a)), torch.matrix_exp(torch.from_numpy(a)),
        dtype,
    )  # fmt: skip


def householder(m, x):
    below = x.tril(-1)
    tau = 2 / (1 + (below.abs() ** 2).sum(-2))
    return m.linalg.householder_product(below, tau.to(x.dtype))


# Functions that do not depend on the freedom of signs and phases.
DIFFERENTIABLE = {
    "qr": ((4, 3), lambda m, x: m.linalg.qr(x)),
    "qr of a wide matrix": ((2, 4), lambda m, x: m.linalg.qr(x)),
    "solve": ((3, 3), lambda m, x: [m.linalg.solve(x, x[:, :2] + 1)]),
    "solve a vector": ((3, 3), lambda m, x: [m.linalg.solve(x, x[:, 0] + 1)]),
    "solve from the right": (
        (3, 3),
        lambda m, x: [m.linalg.solve(x, x[:2] + 1, left=False)],
    ),
    "inverse": ((2, 2, 2), lambda m, x: [m.inverse(x)]),
    "exponential": ((2, 3, 3), lambda m, x: [m.matrix_exp(x)]),
    "reflections": ((4, 3), lambda m, x: [householder(m, x)]),
    "singular values": ((2, 3), lambda m, x: [m.linalg.svdvals(x)]),
    "svd": (
        (4, 3),
        lambda m, x: (lambda u, s, v: [u * s.unsqueeze(-2) @ v, (u @ u.mH), v.mH @ v])(
            *m.linalg.svd(x, full_matrices=False)
        ),
    ),
    "svd of a wide matrix": (
        (2, 4),
        lambda m, x: (lambda u, s, v: [s, v.mH[:, :1] @ v[:1], u[:, 1:] @ u[:, 1:].mH])(
            *m.linalg.svd(x, full_matrices=False)
        ),
    ),
    "nuclear norm": ((3, 3), lambda m, x: [m.linalg.matrix_norm(x, "nuc")]),
    "spectral norm": ((3, 2), lambda m, x: [m.linalg.matrix_norm(x, 2)]),
}


def gradient(m, call, a, *, second=False):
    x = m.from_numpy(a.copy()).requires_grad_()
    total = 0
    for i, t in enumerate(call(m, x)):
        weights = m.from_numpy(matrices(tuple(t.shape), str(t.dtype)[6:], i + 5))
        total = total + (t * weights).sum().abs() ** 2
    (g,) = m.autograd.grad(total, x, create_graph=second)
    if second:
        (g,) = m.autograd.grad((g.abs() ** 2).sum(), x)
    return g


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name, dtype, second) -> None:
    shape, call = DIFFERENTIABLE[name]
    a = matrices(shape, dtype)
    got, want = (gradient(m, call, a, second=second) for m in (taeda, torch))
    scale = max(1.0, float(want.abs().max()))
    close(got / scale, want / scale, steps=200)


PHASES = {
    "U": ("svd", lambda u, s, v: u.sum()),
    "V": ("svd", lambda u, s, v: v.sum()),
    "U and V apart": ("svd", lambda u, s, v: (u + v).sum()),
    "Hermitian": ("eigh", lambda w, v: v.sum()),
    "eig": ("eig", lambda w, v: v.sum()),
}


@pytest.mark.parametrize("name", PHASES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_losses_that_turn_with_a_phase_are_refused(name, dtype) -> None:
    function, loss = PHASES[name]
    a = matrices((2, 3, 3), dtype)
    for m in (taeda, torch):
        x = m.from_numpy(a.copy()).requires_grad_()
        out = loss(*getattr(m.linalg, function)(x + x.mH if "h" in function else x))
        with pytest.raises(
            RuntimeError, match=f"{function}_backward.*phi.*ill-defined"
        ):
            out.abs().backward()


def test_losses_of_samples_that_turn_with_a_phase_are_refused() -> None:
    def loss(a):
        return taeda.linalg.eigh(a + a.mH)[1].sum().abs()

    def still(a):
        return taeda.linalg.eigh(a + a.mH)[1].abs().sum()

    a = taeda.from_numpy(matrices((2, 3, 3), "complex128"))
    with pytest.raises(RuntimeError, match="linalg_eigh_backward.*ill-defined"):
        taeda.vmap(taeda.func.grad(loss))(a)
    assert taeda.vmap(taeda.func.grad(still))(a).isfinite().all()


REFUSED = {
    "m.linalg.qr(m.ones(2))": RuntimeError,
    "m.linalg.qr(m.ones(2, 2), mode='x')": RuntimeError,
    "m.linalg.qr(m.ones(2, 2, dtype=m.int64))": RuntimeError,
    "m.linalg.inv(m.ones(2, 3))": RuntimeError,
    "m.linalg.inv(m.ones(2, 2))": "LinAlgError",
    "m.linalg.solve(m.ones(2, 2), m.ones(2))": "LinAlgError",
    "m.linalg.solve(m.ones(2, 2), m.ones(3, 2))": RuntimeError,
    "m.linalg.solve(m.ones(2, 2), m.ones(2).double())": RuntimeError,
    "m.linalg.matrix_norm(m.ones(2))": RuntimeError,
    "m.linalg.matrix_norm(m.ones(2, 2), 3)": RuntimeError,
    "m.linalg.matrix_norm(m.ones(2, 2), 'x')": RuntimeError,
    "m.linalg.matrix_norm(m.ones(2, 2), dim=(0, 0))": RuntimeError,
    "m.linalg.householder_product(m.ones(2, 3), m.ones(2))": RuntimeError,
    "m.linalg.svd(m.ones(2, 2), driver='gesvd')": RuntimeError,
    "m.matrix_exp(m.ones(2, 3))": RuntimeError,
}


@pytest.mark.parametrize("expression", REFUSED)
def test_refused(expression) -> None:
    kind = REFUSED[expression]
    for m in (taeda, torch):
        expected = m.linalg.LinAlgError if kind == "LinAlgError" else kind
        with pytest.raises(expected):
            eval(expression, {"m": m})


def test_derivatives_that_do_not_exist() -> None:
    x = taeda.from_numpy(matrices((4, 3))).requires_grad_()
    with pytest.raises(RuntimeError, match="mode='r'"):
        taeda.linalg.qr(x, mode="r").R.sum().backward()
    with pytest.raises(RuntimeError, match="mode='complete'"):
        taeda.linalg.qr(x, mode="complete").R.sum().backward()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [3, 5, 16])
def test_eigenvectors_of_small_matrices_are_rounded_once(dtype, n) -> None:
    """Each column v satisfies A v = w v but for the roundings of v and w."""
    wide = "complex128" if dtype == "complex64" else "float64"
    given = matrices((n, n), dtype)
    given = given + given.conj().T
    values, vectors = taeda.linalg.eigh(taeda.from_numpy(given))
    w, v = values.numpy().astype("float64"), vectors.resolve_conj().numpy().astype(wide)
    half = numpy.finfo("float32").eps / 2
    # |A dv| + |dw v| + |w dv|, with dv and dw of half a unit in the last place each.
    bound = half * (3 * numpy.abs(w).max() + numpy.linalg.norm(given, 2))
    assert numpy.linalg.norm(given @ v - v * w, axis=0).max() <= bound


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [3, 5, 16])
def test_eigenvectors_of_general_matrices_are_rounded_once(dtype, n) -> None:
    """In LAPACK's order, and as it normalises them."""
    given = matrices((20, n, n), dtype)
    values, vectors = taeda.linalg.eig(taeda.from_numpy(given))
    a, w, v = (t.astype("complex128") for t in (given, values.numpy(), vectors.numpy()))
    half = numpy.finfo("float32").eps / 2
    norms = numpy.linalg.norm(given, 2, axis=(-2, -1)).max()
    bound = half * (2 * numpy.abs(w).max() + norms)
    residual = a @ v - v * w[:, None, :]
    assert numpy.linalg.norm(residual, axis=-2).max() <= bound
    assert numpy.abs(numpy.linalg.norm(v, axis=-2) - 1).max() <= 2 * half
    largest = numpy.take_along_axis(v, numpy.abs(v).argmax(-2)[:, None], -2)
    assert numpy.abs(largest.imag).max() <= half
    wanted = torch.linalg.eigvals(torch.from_numpy(given)).numpy()
    in_order = numpy.abs(wanted - values.numpy()).max(-1) <= 1e-3
    assert in_order.mean() >= 0.9


def test_exact_eigenpairs_stay_exact() -> None:
    given = numpy.array([[2, 1, 0], [0, 0, 3], [0, 0, -1]], "float32")
    values, vectors = taeda.linalg.eig(taeda.from_numpy(given))
    assert values.tolist() == [2, 0, -1]
    assert (vectors.numpy() == numpy.triu(vectors.numpy())).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_of_exponentials_are_rounded_once(dtype) -> None:
    wide = "complex128" if dtype == "complex64" else "float64"
    given = matrices((3, 5, 5), dtype) * numpy.float32(3)
    ways = matrices((3, 5, 5), dtype, seed=1)

    def results(kind):
        a = taeda.from_numpy(given.astype(kind)).requires_grad_()
        out = taeda.linalg.matrix_exp(a)
        (grad,) = taeda.autograd.grad(out, a, taeda.from_numpy(ways.astype(kind)))
        return out.detach().numpy(), grad.resolve_conj().numpy()

    for got, exact in zip(results(dtype), results(wide), strict=True):
        off = numpy.abs(got - exact)
        assert (off <= numpy.finfo("float32").eps * numpy.abs(exact)).all()


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_exponentials_of_small_floats(dtype) -> None:
    """PyTorch takes them, too, but of ones its result is infinite."""
    a = taeda.from_numpy(matrices((2, 4, 4))).to(dtype).requires_grad_()
    wide = a.detach().double().requires_grad_()
    for x in (a, wide):
        taeda.linalg.matrix_exp(x).sum().backward()
    pairs = [(taeda.linalg.matrix_exp(a), taeda.linalg.matrix_exp(wide))]
    for got, exact in [*pairs, (a.grad, wide.grad)]:
        assert got.dtype == dtype
        off = (got.double() - exact).abs()
        assert (off <= taeda.finfo(dtype).eps / 2 * exact.abs()).all()


@pytest.mark.parametrize("shape", [(3, 2), (0, 0), (2, 3, 0)])
def test_no_reflection_has_no_gradient(shape) -> None:
    for m in (taeda, torch):
        a = m.zeros(shape).requires_grad_()
        tau = m.zeros((*shape[:-2], 0)).requires_grad_()
        out = m.linalg.householder_product(a, tau)
        found = m.autograd.grad(out, [a, tau], m.ones_like(out), allow_unused=True)
        assert found == (None, None)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_of_any_reflections_are_rounded_once(dtype) -> None:
    """Not of length 1: what undoes them brings out the roundings before it."""
    wide = "complex128" if dtype == "complex64" else "float64"
    given = [matrices(s, dtype) for s in [(20, 5, 4), (20, 4), (20, 5, 4)]]

    def results(kind):
        a, tau, ways = (taeda.from_numpy(x.astype(kind)) for x in given)
        a, tau = a.requires_grad_(), tau.requires_grad_()
        out = taeda.linalg.householder_product(a, tau)
        return [g.numpy() for g in taeda.autograd.grad(out, [a, tau], ways)]

    for got, exact in zip(results(dtype), results(wide), strict=True):
        off = numpy.abs(got - exact)
        assert (off <= numpy.finfo("float32").eps * numpy.abs(exact)).all()
