"""Batches of small matrices: residuals as small as LAPACK's, its conventions.

Every operator x dtype x n x layout x batch is one cell; each residual is measured in
float64 or complex128 and bounded by a multiple of n times the rounding unit, as for
LAPACK's own routines.
"""

from __future__ import annotations

import itertools

import numpy
import pytest
import taeda
import torch

DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [1, 2, 3, 4, 5, 8, 13, 16, 17]
LAYOUTS = ["plain", "transposed", "strided", "reversed", "broadcast", "conjugate"]
BATCHES = [0, 1, 3, 70]
# Of n times the rounding unit. LAPACK's own residuals reach 10.
BOUND = 30


def numbers(dtype: str, *shape: int, seed: int = 0) -> numpy.ndarray:
    random = numpy.random.default_rng(seed)
    values = random.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.normal(size=shape)
    return values.astype(dtype)


def wide(x) -> numpy.ndarray:
    """An array of float64 or complex128 numbers."""
    values = x.detach().resolve_conj().numpy() if hasattr(x, "detach") else x
    complex_numbers = numpy.iscomplexobj(values)
    return values.astype("complex128" if complex_numbers else "float64")


def adjoint(x: numpy.ndarray) -> numpy.ndarray:
    return x.conj().swapaxes(-1, -2)


def laid_out(array: numpy.ndarray, layout: str):
    """A tensor with the values of `array`, in another layout."""
    t = taeda.from_numpy(array.copy())
    if layout == "transposed":
        return t.mT.contiguous().mT
    if layout == "strided":
        room = taeda.zeros(*(2 * size for size in t.shape), dtype=t.dtype)
        view = room[tuple(slice(0, 2 * size, 2) for size in t.shape)]
        return view.copy_(t)
    if layout == "reversed":  # the batch's dims in another order
        return t.unsqueeze(0).transpose(0, 1).contiguous().transpose(0, 1)[0]
    if layout == "conjugate" and t.is_complex():
        return t.conj().resolve_conj().conj()
    return t


def size_of(x: numpy.ndarray) -> numpy.ndarray:
    """The largest magnitude of each matrix; 0 for an empty one."""
    return numpy.abs(x).max(axis=(-1, -2), initial=0)


def check(residual, scale, dtype: str, n: int) -> None:
    """|residual| <= BOUND n eps scale, for each matrix."""
    eps = numpy.finfo(dtype).eps
    bad = size_of(residual) > BOUND * n * eps * numpy.maximum(scale, 1e-30)
    assert not bad.any(), (size_of(residual) / scale / eps / n).max()


def is_unitary(q, dtype: str) -> None:
    q = wide(q)
    n = q.shape[-1]
    check(adjoint(q) @ q - numpy.eye(n), numpy.ones(q.shape[:-2]), dtype, n)


def norms(*arrays: numpy.ndarray) -> numpy.ndarray:
    """The product of the matrices' Frobenius norms."""
    product = 1.0
    for a in arrays:
        product = product * numpy.sqrt((numpy.abs(a) ** 2).sum(axis=(-1, -2)))
    return product


def check_inv(a, t, dtype, n) -> None:
    x = wide(taeda.linalg.inv(t))
    check(wide(a) @ x - numpy.eye(n), norms(wide(a), x), dtype, n)
    got, info = taeda.linalg.inv_ex(t)
    assert (wide(got) == x).all() and not info.any()


def check_det(a, t, dtype, n) -> None:
    got, want = wide(taeda.linalg.det(t)), numpy.linalg.det(wide(a))
    condition = numpy.linalg.cond(wide(a)) if a.size else numpy.ones(a.shape[:-2])
    eps = numpy.finfo(dtype).eps
    assert (abs(got - want) <= BOUND * n * eps * condition * abs(want)).all()
    sign, log = map(wide, taeda.linalg.slogdet(t))
    assert (
        abs(sign * numpy.exp(log) - want) <= 2 * BOUND * n * eps * condition * abs(want)
    ).all()


def check_solve(a, t, dtype, n) -> None:
    for columns, left in ((1, True), (n, True), (5, False), (20, True)):
        shape = (n, columns) if left else (columns, n)
        b = numbers(dtype, *a.shape[:-2], *shape, seed=9)
        right = taeda.from_numpy(b)
        x = wide(taeda.linalg.solve(t, right, left=left))
        residual = (wide(a) @ x if left else x @ wide(a)) - b
        check(residual, norms(wide(a), x), dtype, n)
        got, info = taeda.linalg.solve_ex(t, right, left=left)
        assert (wide(got) == x).all() and not info.any()


def check_lu(a, t, dtype, n) -> None:
    lu, pivots = taeda.linalg.lu_factor(t)
    want = torch.linalg.lu_factor(torch.from_numpy(a))
    assert pivots.dtype == taeda.int32
    assert (pivots.numpy() == want.pivots.numpy()).all()
    p, low, up = map(wide, taeda.lu_unpack(lu, pivots))
    check(p @ low @ up - a, norms(low, up), dtype, n)


def positive(a: numpy.ndarray) -> numpy.ndarray:
    n = a.shape[-1]
    return (a @ adjoint(a) + numpy.eye(n, dtype=a.dtype)).astype(a.dtype)


def check_cholesky(a, t, dtype, n) -> None:
    for upper in (False, True):
        # What stands in the other triangle is not read.
        outside = numpy.full((n, n), numpy.nan, dtype=dtype)
        other = numpy.tril(outside, -1) if upper else numpy.triu(outside, 1)
        half = numpy.triu(a) if upper else numpy.tril(a)
        f = taeda.linalg.cholesky(laid_out((half + other), "plain"), upper=upper)
        whole = taeda.linalg.cholesky(t, upper=upper)
        got = wide(whole)
        assert (wide(f) == got).all() or size_of(wide(f) - got).max() < 1e-3
        assert ((numpy.tril(got, -1) if upper else numpy.triu(got, 1)) == 0).all()
        product = adjoint(got) @ got if upper else got @ adjoint(got)
        check(product - a, norms(wide(a)), dtype, n)
        b = numbers(dtype, *a.shape[:-2], n, 3, seed=7)
        x = wide(taeda.cholesky_solve(taeda.from_numpy(b), whole, upper=upper))
        check(product @ x - b, norms(product, x), dtype, n)
        x = wide(taeda.cholesky_inverse(whole, upper=upper))
        check(product @ x - numpy.eye(n), norms(product, x), dtype, n)


def check_triangular(a, t, dtype, n) -> None:
    for upper, left, unit in itertools.product([False, True], repeat=3):
        triangle = numpy.triu(wide(a)) if upper else numpy.tril(wide(a))
        if unit:
            triangle = triangle - triangle * numpy.eye(n) + numpy.eye(n)
        b = numbers(dtype, *a.shape[:-2], *((n, 6) if left else (6, n)), seed=5)
        x = taeda.linalg.solve_triangular(
            t, taeda.from_numpy(b), upper=upper, left=left, unitriangular=unit
        )
        product = triangle @ wide(x) if left else wide(x) @ triangle
        check(product - b, norms(triangle, wide(x)), dtype, n)


def check_qr(a, t, dtype, n) -> None:
    for m, mode in ((n, "reduced"), (max(1, n - 2), "complete"), (n, "r")):
        part, values = t[..., :m], a[..., :m]
        q, r = taeda.linalg.qr(part, mode=mode)
        want = torch.linalg.qr(torch.from_numpy(values.copy()), mode=mode)
        assert r.shape == tuple(want.R.shape) and q.shape == tuple(want.Q.shape)
        # LAPACK's signs: the diagonal of R is real.
        diagonal = numpy.diagonal(wide(r), axis1=-2, axis2=-1)
        wanted = numpy.diagonal(wide(want.R), axis1=-2, axis2=-1)
        clear = abs(wanted) > 1e-3
        assert (numpy.sign(diagonal.real) == numpy.sign(wanted.real))[clear].all()
        assert (diagonal.imag == 0).all()
        assert (numpy.tril(wide(r), -1) == 0).all()
        if mode == "r":
            gram = adjoint(wide(values)) @ wide(values)
            check(adjoint(wide(r)) @ wide(r) - gram, norms(gram), dtype, n)
            continue
        is_unitary(q, dtype)
        check(wide(q) @ wide(r) - values, norms(wide(values)), dtype, n)


def check_eigh(a, t, dtype, n) -> None:
    for uplo in "LU":
        values, vectors = taeda.linalg.eigh(t, UPLO=uplo)
        w, v = wide(values), wide(vectors)
        assert (numpy.diff(w, axis=-1) >= 0).all()
        is_unitary(vectors, dtype)
        check((v * w[..., None, :]) @ adjoint(v) - a, norms(wide(a)), dtype, n)
        want = numpy.linalg.eigvalsh(wide(a))
        check((w - want)[..., None], norms(wide(a)), dtype, n)
        only = wide(taeda.linalg.eigvalsh(t, UPLO=uplo))
        check((only - want)[..., None], norms(wide(a)), dtype, n)


def check_svd(a, t, dtype, n) -> None:
    few = max(1, n - 3)
    for part, values in ((t, a), (t[..., :few], a[..., :few]),
                         (t[..., :few, :], a[..., :few, :])):  # fmt: skip
        for full in (False, True):
            u, s, vh = taeda.linalg.svd(part, full_matrices=full)
            got = wide(s)
            assert (numpy.diff(got, axis=-1) <= 0).all() and (got >= 0).all()
            is_unitary(u, dtype)
            is_unitary(vh.mH, dtype)
            k = got.shape[-1]
            product = (wide(u)[..., :k] * got[..., None, :]) @ wide(vh)[..., :k, :]
            check(product - values, norms(wide(values)), dtype, n)
        want = numpy.linalg.svd(wide(values), compute_uv=False)
        check((got - want)[..., None], norms(wide(values)), dtype, n)
        only = wide(taeda.linalg.svdvals(part))
        check((only - want)[..., None], norms(wide(values)), dtype, n)


CHECKS = {
    "inv": check_inv, "det": check_det, "solve": check_solve, "lu": check_lu,
    "cholesky": check_cholesky, "triangular": check_triangular, "qr": check_qr,
    "eigh": check_eigh, "svd": check_svd,
}  # fmt: skip
counted: set[tuple] = set()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHECKS)
def test_residuals(name, dtype) -> None:
    for n, layout, batch in itertools.product(SIZES, LAYOUTS, BATCHES):
        a = numbers(dtype, batch, n, n, seed=n)
        if name in ("cholesky", "eigh"):
            a = positive(a)
        if name in ("inv", "solve", "triangular"):
            a = (a + 3 * numpy.eye(n)).astype(dtype)
        t = laid_out(a, layout)
        if layout == "broadcast":
            a = numpy.broadcast_to(a[:1], a.shape)
            t = t[:1].expand(*a.shape)
            a = a.copy()
        CHECKS[name](a, t, dtype, n)
        counted.add((name, dtype, n, layout, batch))


def test_every_cell_ran() -> None:
    cells = len(CHECKS) * len(DTYPES) * len(SIZES) * len(LAYOUTS) * len(BATCHES)
    assert len(counted) == cells == 7776


def eyes(count: int, n: int = 3) -> numpy.ndarray:
    return numpy.eye(n, dtype="float32") + numpy.zeros((count, n, n), "float32")


def broken(element: int, value: float = 0.0, count: int = 40) -> numpy.ndarray:
    """Identities but for one number on the diagonal of one matrix."""
    a = eyes(count)
    a[element, 1, 1] = value
    return a


REFUSED = {
    "inv": lambda m, a: m.linalg.inv(a),
    "inv_ex": lambda m, a: m.linalg.inv_ex(a, check_errors=True),
    "solve": lambda m, a: m.linalg.solve(a, a),
    "solve_ex": lambda m, a: m.linalg.solve_ex(a, a, check_errors=True),
    "lu_factor": lambda m, a: m.linalg.lu_factor(a),
    "lu_factor_ex": lambda m, a: m.linalg.lu_factor_ex(a, check_errors=True),
    "cholesky": lambda m, a: m.linalg.cholesky(a),
    "cholesky_ex": lambda m, a: m.linalg.cholesky_ex(a, check_errors=True),
}


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_texts_of_errors_are_pytorchs(name, batch) -> None:
    a = broken(3) if batch else broken(3)[3]
    texts = []
    for m in (taeda, torch):
        with pytest.raises(RuntimeError) as caught:
            REFUSED[name](m, m.from_numpy(a))
        texts.append((type(caught.value).__name__.strip("_"), str(caught.value)))
    assert texts[0][1] == texts[1][1]
    assert (texts[0][0] == "LinAlgError") == (texts[1][0] == "LinAlgError")


def test_info_of_singular_matrices() -> None:
    a = broken(3)
    a[7, 0] = 0
    for name in ("inv_ex", "lu_factor_ex", "cholesky_ex"):
        infos = [
            getattr(m.linalg, name)(m.from_numpy(a))[-1].numpy() for m in (taeda, torch)
        ]
        assert (infos[0] == infos[1]).all() and infos[0][[3, 7]].tolist() == [2, 1]
    infos = [
        m.linalg.solve_ex(m.from_numpy(a), m.from_numpy(a))[1].numpy()
        for m in (taeda, torch)
    ]
    assert (infos[0] == infos[1]).all()
    assert (taeda.linalg.det(taeda.from_numpy(a)).numpy()[[3, 7]] == 0).all()
    sign, logs = taeda.linalg.slogdet(taeda.from_numpy(a))
    assert (sign.numpy()[[3, 7]] == 0).all() and numpy.isneginf(
        logs.numpy()[[3, 7]]
    ).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_matrix_that_is_not_finite_leaves_the_others_alone(value) -> None:
    a, others = broken(5, value), [i for i in range(40) if i != 5]
    t = taeda.from_numpy(a)
    for result in (
        taeda.linalg.inv(t), taeda.linalg.solve(t, t), *taeda.linalg.qr(t),
        taeda.linalg.det(t), *taeda.linalg.slogdet(t), taeda.linalg.lu_factor(t)[0],
        taeda.linalg.cholesky_ex(t)[0], taeda.linalg.solve_triangular(t, t, upper=True),
    ):  # fmt: skip
        values = result.numpy()[others]
        assert numpy.isfinite(values).all() and (values == values[0]).all()
    text = "contained non-finite values" if value != value else None
    if text:
        with pytest.raises(taeda.linalg.LinAlgError, match=r"element 5\): .*" + text):
            taeda.linalg.svd(t)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-120, -60, 60, 120])
def test_numbers_whose_squares_are_not_representable(dtype, exponent) -> None:
    """LAPACK scales; these matrices must come out as exactly."""
    scale = 2.0 ** (exponent if dtype in ("float32", "complex64") else 8 * exponent)
    a = positive(numbers(dtype, 40, 4, 4))
    t = taeda.from_numpy((a * scale).astype(dtype))
    low = wide(taeda.linalg.cholesky(t)) / numpy.sqrt(scale)
    check(low @ adjoint(low) - a, norms(wide(a)), dtype, 4)
    q, r = taeda.linalg.qr(t)
    is_unitary(q, dtype)
    check(wide(q) @ (wide(r) / scale) - a, norms(wide(a)), dtype, 4)
    w, v = taeda.linalg.eigh(t)
    is_unitary(v, dtype)
    values = wide(w)[..., None, :] / scale
    check((wide(v) * values) @ adjoint(wide(v)) - a, norms(wide(a)), dtype, 4)
    u, s, vh = taeda.linalg.svd(t)
    is_unitary(u, dtype)
    product = (wide(u) * (wide(s)[..., None, :] / scale)) @ wide(vh)
    check(product - a, norms(wide(a)), dtype, 4)
    b = numbers(dtype, 40, 4, 2, seed=3)
    right = taeda.from_numpy((b * scale).astype(dtype))
    x = wide(taeda.linalg.solve(t, right))
    check(wide(a) @ x - b, norms(wide(a), x), dtype, 4)


SPECIAL = {
    "zeros": numpy.zeros((4, 4)),
    "identity": numpy.eye(4),
    "ones": numpy.ones((4, 4)),
    "swap": numpy.eye(4)[::-1],
    "one column": numpy.outer(numpy.arange(1, 5), [0, 1, 0, 0]),
    "graded": numpy.diag([1, 1e-3, 1e-6, 1e-9]) @ numpy.ones((4, 4)),
    "clustered": numpy.eye(4) + 1e-7 * numpy.ones((4, 4)),
    "zero on the diagonal": numpy.diag([1.0, 0, 2, 3]) + numpy.diag([1.0, 1, 1], 1),
    "zero at the end": numpy.diag([1.0, 2, 3, 0]) + numpy.diag([1.0, 1, 1], 1),
    "nilpotent": numpy.diag([1.0, 1, 1], 1),
    "jordan": numpy.eye(4) + numpy.diag([1.0, 1, 1], 1),
    "kahan": numpy.triu(-0.5 * numpy.ones((4, 4)), 1)
    + numpy.diag(0.6 ** numpy.arange(4)),
    "hilbert": 1 / (numpy.arange(4)[:, None] + numpy.arange(4) + 1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_matrices(name, dtype) -> None:
    """Rank-deficient, split, nearly singular; beside random ones, so in lanes."""
    a = numbers(dtype, 33, 4, 4)
    a[::2] = SPECIAL[name]
    t = taeda.from_numpy(a)
    check_svd(a, t, dtype, 4)
    check_qr_residual(a, t, dtype)
    half = (a + adjoint(a)) / 2
    check_eigh(half.astype(dtype), taeda.from_numpy(half.astype(dtype)), dtype, 4)
    lu, pivots, _ = taeda.linalg.lu_factor_ex(t)
    p, low, up = map(wide, taeda.lu_unpack(lu, pivots))
    check(p @ low @ up - a, norms(low, up), dtype, 4)
    assert (abs(low) <= 2**0.5 + 1e-6).all()


def check_qr_residual(a, t, dtype) -> None:
    q, r = taeda.linalg.qr(t)
    is_unitary(q, dtype)
    check(wide(q) @ wide(r) - a, norms(wide(a)), dtype, a.shape[-1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_call_on_two_threads(dtype) -> None:
    a = numbers(dtype, 1000, 8, 8)
    one = taeda.linalg.svd(taeda.from_numpy(a))
    threads = taeda.get_num_threads()
    try:
        taeda.set_num_threads(2)
        two = taeda.linalg.svd(taeda.from_numpy(a))
    finally:
        taeda.set_num_threads(threads)
    for x, y in zip(one, two, strict=True):
        assert (x.numpy() == y.numpy()).all()
