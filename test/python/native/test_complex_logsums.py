"""logaddexp, logaddexp2 and logcumsumexp of complex numbers, and at their limits."""

from __future__ import annotations

import cmath

import numpy as np
import pytest
import taeda
import torch

INF = float("inf")
LIMITS = [
    *(complex(-INF, 1.0), complex(-INF, 2.0), complex(INF, 0.0), complex(INF, 1.0)),
    *(complex(1e4, 3.0), complex(-1e4, 1.0), 0j, complex(float("nan"), 0.0)),
]


def close(got, want, rtol=1e-12) -> bool:
    got, want = np.asarray(got.tolist()), np.asarray(want.tolist())
    return np.allclose(got, want, rtol=rtol, atol=rtol, equal_nan=True)


def test_values_and_gradients():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(20,)) * 3 + 1j * rng.normal(size=(20,)) for _ in "ab")

    def program(lib):
        x, y = (lib.tensor(v, requires_grad=True) for v in (a, b))
        out = lib.logaddexp(x, y)
        return out, *lib.autograd.grad(out, (x, y), out.detach())

    for got, want in zip(program(taeda), program(torch), strict=True):
        assert close(got, want)


def test_powers_of_two():
    """PyTorch has no kernel for complex numbers."""
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(20,)) + 1j * rng.normal(size=(20,)) for _ in "ab")
    x, y = (taeda.tensor(v, requires_grad=True) for v in (a, b))
    assert close(taeda.logaddexp2(x, y), np.log(2.0**a + 2.0**b) / np.log(2))
    assert taeda.autograd.gradcheck(taeda.logaddexp2, (x, y))


def test_equal_infinities_and_nan():
    for a in LIMITS:
        for b in LIMITS:
            got, want = (
                lib.logaddexp(
                    lib.tensor(a, dtype=lib.complex128),
                    lib.tensor(b, dtype=lib.complex128),
                ).item()
                for lib in (taeda, torch)
            )
            assert cmath.isnan(got) == cmath.isnan(want), (a, b)
            if not cmath.isnan(want) and cmath.isfinite(want):
                assert cmath.isclose(got, want, rel_tol=1e-12), (a, b)


@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums(dim):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 5)) * 2 + 1j * rng.normal(size=(4, 5))

    def program(lib):
        x = lib.tensor(a, requires_grad=True)
        out = lib.logcumsumexp(x, dim)
        return out, *lib.autograd.grad(out, x, out.detach())

    for got, want in zip(program(taeda), program(torch), strict=True):
        assert close(got, want)
    x = taeda.tensor(a, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda t: taeda.logcumsumexp(t, dim), x)
    assert taeda.autograd.gradgradcheck(lambda t: taeda.logcumsumexp(t, dim), x)


def test_slopes_of_large_sums_keep_their_digits():
    """Totals of float have 1e-3 between them at 10,000."""
    x = taeda.full((5,), 1e4, requires_grad=True)
    (slope,) = taeda.autograd.grad(taeda.logcumsumexp(x, 0).sum(), x)
    exact = [sum(1 / (j + 1) for j in range(i, 5)) for i in range(5)]
    assert np.allclose(slope.tolist(), exact, rtol=1e-6)


def test_an_infinite_sum_leaves_the_others_slopes():
    def program(lib):
        x = lib.tensor([1.0, 2.0, INF, 3.0], requires_grad=True)
        return lib.autograd.grad(lib.logcumsumexp(x, 0).sum(), x)[0]

    assert close(program(taeda), program(torch), 1e-5)


def test_running_sums_of_nothing_and_of_infinities():
    """Nothing has no angle, an infinity the quadrant of what was added."""
    nan = float("nan")
    rows = (
        [complex(-INF, 4), complex(-INF, INF), complex(1.2, 2.1)],
        [complex(1e10, 1e20), complex(INF, 0), complex(INF, 1), complex(INF, 3)],
        [complex(INF, 1), complex(-INF, 2), complex(1, 2), complex(nan, 0)],
        [complex(-INF, nan), 1j],
        [complex(2.4, INF), 1j],
    )
    for row in rows:
        for shape in ((-1,), (-1, 1, 1)):
            got, want = (
                lib.tensor(row, dtype=lib.complex128)
                .reshape(shape)
                .expand(*shape[:-1], -1 if len(shape) == 1 else 2)
                .logcumsumexp(0)
                for lib in (taeda, torch)
            )
            for part in ("real", "imag"):
                assert close(getattr(got, part), getattr(want, part)), row
