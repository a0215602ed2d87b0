"""QR, eigh and lstsq of one matrix of medium size: our reflections and rotations."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import torch

FLOATS = [np.float32, np.float64]
# Around the sizes at which blocks begin and LAPACK takes over.
SIZES = [2, 3, 15, 17, 31, 33, 64, 65, 96, 97, 128, 160, 161, 257]


def _random(*shape: int, dtype: type, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def _units(a: np.ndarray, dtype: type, scale: float = 1.0) -> float:
    """The largest element in roundings of `scale`."""
    return float(np.abs(a).max()) / (np.finfo(dtype).eps * scale) if a.size else 0.0


def _check_qr(a: np.ndarray, mode: str = "reduced") -> None:
    q, r = (t.numpy() for t in taeda.linalg.qr(taeda.from_numpy(a), mode=mode))
    want_q, want_r = torch.linalg.qr(torch.from_numpy(a), mode=mode)
    assert q.shape == tuple(want_q.shape) and r.shape == tuple(want_r.shape)
    assert not np.tril(r, -1).any()
    dtype, size = a.dtype, float(np.linalg.norm(a.astype(np.float64)))
    # R is unique but for signs, and these are LAPACK's.
    assert (np.sign(np.diagonal(r)) == np.sign(np.diagonal(want_r.numpy()))).all()
    if mode == "r":
        return
    wide = q.astype(np.float64)
    assert _units(wide @ r - a, dtype, size) < 20
    assert _units(wide.T @ wide - np.eye(q.shape[1]), dtype) < 40


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_qr(dtype, size) -> None:
    shapes = [(size, size), (2 * size + 1, size), (size, size + 5)]
    shapes += [(300, min(size, 40)), (min(size, 40), 300)]
    for shape in shapes:
        for mode in ("reduced", "complete", "r"):
            _check_qr(_random(*shape, dtype=dtype), mode)


@pytest.mark.parametrize("dtype", FLOATS)
def test_qr_of_views_and_batches(dtype) -> None:
    a = _random(2, 3, 70, 66, dtype=dtype)
    given = taeda.from_numpy(a)
    views = [given.mT, given[..., ::2, 1:], given.transpose(0, 1), given[:, :1]]
    views.append(given[:1].expand(2, 3, 70, 66))
    for view in views:
        q, r = taeda.linalg.qr(view)
        assert _units((q @ r - view).numpy(), dtype, 70) < 20
        for i in range(view.shape[0]):
            for j in range(view.shape[1]):
                one = taeda.linalg.qr(view[i, j])
                assert taeda.equal(one.Q, q[i, j]) and taeda.equal(one.R, r[i, j])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [40, 120])
def test_qr_of_deficient_and_extreme_matrices(dtype, size) -> None:
    a = _random(size, size, dtype=dtype)
    zero = np.zeros_like(a)
    repeated = np.repeat(a[:, : size // 2], 2, axis=1)
    with_zeros = a.copy()
    with_zeros[:, 3] = 0
    for matrix in (zero, np.eye(size, dtype=dtype), repeated, with_zeros, np.triu(a)):
        q, r = (t.numpy() for t in taeda.linalg.qr(taeda.from_numpy(matrix)))
        assert _units(q @ r - matrix, dtype, size) < 20
        assert _units(q.T @ q - np.eye(size), dtype) < 80
    info = np.finfo(dtype)
    for scale in (info.max / (4 * size), float(info.tiny) * size, 2.0**-100, 2.0**100):
        q, r = (t.numpy() for t in taeda.linalg.qr(taeda.from_numpy(a * dtype(scale))))
        assert np.isfinite(r).all()
        back = q.astype(np.float64) @ (r.astype(np.float64) / scale)
        assert _units(back - a, dtype, size) < 20
    a[5, 7] = np.nan
    assert np.isnan(taeda.linalg.qr(taeda.from_numpy(a))[1].numpy()).any()
    a[5, 7] = np.inf
    assert not np.isfinite(taeda.linalg.qr(taeda.from_numpy(a))[1].numpy()).all()


def _symmetric(kind: str, size: int, dtype: type) -> np.ndarray:
    a = _random(size, size, dtype=np.float64)
    q = np.linalg.qr(a)[0]
    diagonals = {
        "random": None,
        "few": np.arange(size) % 3 - 1.0,
        "one": np.ones(size),
        "graded": 10.0 ** (-6.0 * np.arange(size) / size),
        "rank one": np.eye(size)[0] * 3.0,
    }
    if kind == "diagonal":
        return np.diag(a[0]).astype(dtype)
    if kind == "zero":
        return np.zeros((size, size), dtype)
    values = diagonals[kind]
    full = a + a.T if values is None else (q * values) @ q.T
    return ((full + full.T) / 2).astype(dtype)


KINDS = ["random", "few", "one", "graded", "rank one", "diagonal", "zero"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_eigh(dtype, kind) -> None:
    for size in SIZES[:-1]:
        a = _symmetric(kind, size, dtype)
        for uplo, triangle in (("L", np.tril(a)), ("U", np.triu(a))):
            given = taeda.from_numpy(triangle.copy())
            values, vectors = (t.numpy() for t in taeda.linalg.eigh(given, UPLO=uplo))
            want = np.linalg.eigvalsh(a.astype(np.float64))
            scale = float(np.abs(want).max()) or 1.0
            assert (np.diff(values) >= 0).all()
            assert _units(values - want, dtype, scale) < 60
            assert _units(a @ vectors - vectors * values, dtype, scale) < 40
            assert _units(vectors.T @ vectors - np.eye(size), dtype) < 40
            alone = taeda.linalg.eigvalsh(given, UPLO=uplo).numpy()
            assert _units(alone - want, dtype, scale) < 60


@pytest.mark.parametrize("dtype", FLOATS)
def test_eigh_of_extreme_matrices(dtype) -> None:
    a = _symmetric("random", 50, dtype)
    want = np.linalg.eigvalsh(a.astype(np.float64))
    info = np.finfo(dtype)
    for scale in (info.max / 1e3, float(info.tiny) * 1e3, 2.0**-100, 2.0**100):
        scaled = taeda.from_numpy(a * dtype(scale))
        values, vectors = (t.numpy() for t in taeda.linalg.eigh(scaled))
        assert np.allclose(values / scale, want, atol=1e-4)
        assert _units(vectors.T @ vectors - np.eye(50), dtype) < 40
    batch = taeda.from_numpy(np.stack([a, 2 * a]))
    got = taeda.linalg.eigh(batch.mT).eigenvalues
    assert np.allclose(got.numpy(), np.stack([want, 2 * want]), atol=1e-4)
    bad = a.copy()
    bad[20, 3] = bad[3, 20] = np.nan
    for op in ("eigh", "eigvalsh"):
        ours, theirs = None, None
        try:
            ours = getattr(taeda.linalg, op)(taeda.from_numpy(bad))
        except taeda.linalg.LinAlgError as error:
            ours = str(error)
        try:
            theirs = getattr(torch.linalg, op)(torch.from_numpy(bad))
        except torch.linalg.LinAlgError as error:
            theirs = str(error)
        assert isinstance(ours, str) == isinstance(theirs, str)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("driver", ["gels", "gelsy"])
@pytest.mark.parametrize("shape", [(5, 3), (40, 40), (65, 64), (150, 130), (400, 30)])
def test_least_squares(dtype, driver, shape) -> None:
    m, n = shape
    a, b = _random(m, n, dtype=dtype), _random(m, 3, dtype=dtype, seed=1)
    a += 3 * np.eye(m, n, dtype=dtype)
    for right in (b, b[:, :1], b.T.copy().T):
        got = taeda.linalg.lstsq(
            taeda.from_numpy(a), taeda.from_numpy(right), driver=driver
        )
        want = np.linalg.lstsq(a.astype(np.float64), right.astype(np.float64))[0]
        size = float(np.linalg.cond(a.astype(np.float64)) ** 2)
        assert _units(got.solution.numpy() - want, dtype, size) < 60
        if driver == "gelsy":
            assert got.rank.item() == n


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(48, 48), (120, 40), (150, 120), (20, 30)])
def test_ranks_are_those_of_pivoted_factors(dtype, shape) -> None:
    m, n = shape
    k = min(m, n)
    u = np.linalg.qr(_random(m, k, dtype=np.float64))[0]
    v = np.linalg.qr(_random(n, k, dtype=np.float64, seed=2))[0]
    b = _random(m, 2, dtype=dtype, seed=1)
    eps = float(np.finfo(dtype).eps)
    for least in (0.0, 1e-3 * eps, 0.2, 1e-4 if dtype == np.float64 else 1e-2):
        for rank in (1, k // 2, k - 1, k):
            values = np.where(np.arange(k) < rank, 1.0, least)
            a = ((u * values) @ v.T).astype(dtype)
            for rcond in (None, 1e-5):
                ours = taeda.linalg.lstsq(
                    taeda.from_numpy(a), taeda.from_numpy(b), rcond=rcond
                )
                theirs = torch.linalg.lstsq(
                    torch.from_numpy(a), torch.from_numpy(b), rcond=rcond
                )
                assert ours.rank.item() == theirs.rank.item()
                assert ours.rank.item() == (rank if least < eps else k)
                want = theirs.solution.numpy()
                bound = (3e-3 if dtype == np.float32 else 1e-6) * np.abs(want).max()
                assert np.allclose(ours.solution.numpy(), want, 0, bound)


def test_singular_and_infinite_systems() -> None:
    ones = taeda.ones(40, 30)
    for rows in (30, 40):
        singular = taeda.eye(rows, 30)
        singular[7, 7] = 0
        with pytest.raises(taeda.linalg.LinAlgError, match="full rank"):
            taeda.linalg.lstsq(singular, taeda.ones(rows, 1), driver="gels")
    assert taeda.linalg.lstsq(ones, taeda.ones(40, 1)).rank.item() == 1
    assert taeda.linalg.lstsq(taeda.zeros(40, 30), taeda.ones(40, 1)).rank.item() == 0
    empty = taeda.linalg.lstsq(ones, taeda.ones(40, 0))
    assert empty.solution.shape == (30, 0)
    batch = taeda.stack([ones, taeda.eye(40, 30)])
    assert taeda.linalg.lstsq(batch, taeda.ones(2, 40, 1)).rank.tolist() == [1, 30]
