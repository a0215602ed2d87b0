"""torch.special beyond what samples show: ends, degrees, numbers, out=, derivatives."""

from __future__ import annotations

import math

import pytest
import taeda
from taeda import float64, special, tensor

INF, NAN = math.inf, math.nan
POLYNOMIALS = [name for name in dir(special) if "polynomial" in name]
UNARY = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx log_ndtr ndtri
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0""".split()
# At -inf, -1, 0, inf; a letter is a value that is only looked at for its sign.
ENDS = {
    "airy_ai": (0, 0.5355608832923521, 0.3550280538878172, 0),
    "bessel_j0": (0, 0.7651976865579666, 1, 0),
    "bessel_j1": (0, -0.44005058574493355, 0, 0),
    "bessel_y0": (NAN, NAN, -INF, 0),
    "bessel_y1": (NAN, NAN, -INF, 0),
    "erfcx": (INF, 5.008980080762283, 1, 0),
    "log_ndtr": (-INF, -1.8410216450092636, -math.log(2), 0),
    "ndtri": (NAN, NAN, -INF, NAN),
    "modified_bessel_i0": (INF, 1.2660658777520082, 1, INF),
    "modified_bessel_i1": (-INF, -0.565159103992485, 0, INF),
    "modified_bessel_k0": (NAN, NAN, INF, 0),
    "modified_bessel_k1": (NAN, NAN, INF, 0),
    "scaled_modified_bessel_k0": (NAN, NAN, INF, 0),
    "scaled_modified_bessel_k1": (NAN, NAN, INF, 0),
    "spherical_bessel_j0": (0, math.sin(1), 1, 0),
}


def test_tables_name_what_there_is() -> None:
    assert len(POLYNOMIALS) == 12
    assert set(ENDS) == set(UNARY)


@pytest.mark.parametrize("dtype", [taeda.float32, float64])
@pytest.mark.parametrize("name", UNARY)
def test_ends(name: str, dtype: taeda.dtype) -> None:
    x = tensor([-INF, -1.0, 0.0, INF, NAN], dtype=dtype)
    found = getattr(special, name)(x).tolist()
    assert found == pytest.approx([*ENDS[name], NAN], rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("name", UNARY)
def test_unary_forms(name: str) -> None:
    function = getattr(special, name)
    assert function(taeda.ones(0, 3)).shape == (0, 3)
    assert function(tensor([1, 0])).dtype == taeda.float32
    x = taeda.rand(3, 4, dtype=float64)
    out = taeda.empty(0, dtype=float64)
    assert function(x.t(), out=out) is out
    assert taeda.equal(out, function(x).t())
    with pytest.raises(RuntimeError):
        function(x, out=taeda.empty(0, dtype=taeda.int64))
    grad = name in ("erfcx", "log_ndtr", "ndtri")
    assert function(x.requires_grad_()).requires_grad == grad


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_degrees(name: str) -> None:
    function = getattr(special, name)
    x = tensor([[0.25], [0.5], [2.0]], dtype=float64)
    degrees = tensor([-3.0, -1.0, -0.5, 0.0, 0.9, NAN, INF], dtype=float64)
    found = function(x, degrees)
    assert found.shape == (3, 7)
    assert found.tolist() == [[0, 0, 1, 1, 1, 0, 0]] * 3
    whole = function(x, tensor([1, 2, 5]))
    assert taeda.equal(whole[:, 2:], function(x, 5))
    assert taeda.equal(whole[1], function(0.5, tensor([1, 2, 5.0], dtype=float64)))
    assert taeda.equal(function(x, 5.75), function(x, 5))
    out = taeda.empty(3, 1, dtype=float64)
    assert function(x, 5, out=out) is out
    assert taeda.equal(out, whole[:, 2:])
    assert not function(x.requires_grad_(), degrees).requires_grad
    assert function(taeda.ones(0, 1), taeda.ones(3)).shape == (0, 3)
    assert function(taeda.arange(3), 2).dtype == taeda.float32


def test_high_degrees_take_few_steps() -> None:
    x = tensor([-1.0, 0.0, 1.0], dtype=float64)
    n = 2.0**53
    assert special.chebyshev_polynomial_t(x, n).tolist() == [1, 1, 1]
    assert special.chebyshev_polynomial_u(x, n).tolist() == [n, 1, n]
    near = special.chebyshev_polynomial_t(tensor([0.999], dtype=float64), 10**6)
    assert near.item() == pytest.approx(math.cos(1e6 * math.acos(0.999)), abs=1e-8)


def test_overflow_has_its_sign() -> None:
    x = tensor([-3.0, 3.0], dtype=float64)
    assert special.chebyshev_polynomial_t(x, 1001).tolist() == [-INF, INF]
    assert special.legendre_polynomial_p(x, 1001).tolist() == [-INF, INF]
    assert special.laguerre_polynomial_l(x[:1] * 1e3, 1001).tolist() == [INF]


def test_zeta() -> None:
    q = tensor([1.0, 0.5, -0.5, -1.5, 0.0, -2.0, INF, NAN], dtype=float64)
    found = special.zeta(2.0, q).tolist()
    two = math.pi**2 / 6
    half = math.pi**2 / 2
    want = [two, half, half + 4, half + 4 + 4 / 9, INF, INF, 0, NAN]
    assert found == pytest.approx(want, rel=1e-15, nan_ok=True)
    s = tensor([0.5, 1.0, NAN, INF], dtype=float64)
    assert special.zeta(s, 1).tolist() == pytest.approx([NAN, INF, NAN, 1], nan_ok=True)
    assert math.isnan(special.zeta(2.5, tensor(-0.5)).item())
    many = special.zeta(tensor(2.0, dtype=float64), -1e9 + 0.5).item()
    assert many == pytest.approx(2 * half, rel=1e-8)


def test_zeta_of_whole_exponents_is_that_of_those_beside_them() -> None:
    """Powers by products are as good as those of the general function."""
    q = taeda.linspace(0.01, 40, 400, dtype=float64)
    for s in (2.0, 3.0, 5.0, 8.0, 32.0, 33.0):
        step = special.zeta(s, q) - special.zeta(s, q + 1)
        assert taeda.allclose(step, q**-s, rtol=1e-12, atol=1e-15)
    left = tensor([-0.5, -3.25, -20.5, -60.75], dtype=float64)
    for s in (3.0, 4.0):
        step = special.zeta(s, left) - special.zeta(s, left + 1)
        assert taeda.allclose(step, left**-s, rtol=1e-9, atol=1e-12)


def test_zeta_has_a_derivative_by_its_start_alone() -> None:
    s = tensor([2.0, 3.5], dtype=float64, requires_grad=True)
    q = tensor([0.7, 1.5], dtype=float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda q: special.zeta(s.detach(), q), (q,))
    result = special.zeta(s, q)
    with pytest.raises(NotImplementedError, match="derivative for special_zeta: self"):
        result.sum().backward()


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "ndtri"])
def test_derivatives(name: str) -> None:
    function = getattr(special, name)
    points = [0.05, 0.5, 0.9] if name == "ndtri" else [-2.0, -0.3, 0.4, 3.0]
    x = tensor(points, dtype=float64, requires_grad=True)
    assert taeda.autograd.gradcheck(function, (x,))
    assert taeda.autograd.gradgradcheck(function, (x,))


def test_multivariate_gamma() -> None:
    x = tensor([2.5, 4.0], dtype=float64, requires_grad=True)
    want = [math.log(math.pi) / 2 + math.lgamma(v) + math.lgamma(v - 0.5) for v in x]
    assert special.multigammaln(x, 2).tolist() == pytest.approx(want, rel=1e-15)
    assert taeda.autograd.gradcheck(lambda x: taeda.mvlgamma(x, 3), (x,))
    assert taeda.mvlgamma(tensor([3, 4]), 2).dtype == taeda.float32
    assert x.detach().clone().mvlgamma_(1).tolist() == taeda.lgamma(x).tolist()
    with pytest.raises(RuntimeError, match="p of at least 1"):
        taeda.mvlgamma(x, 0)
    with pytest.raises(RuntimeError, match="boolean"):
        taeda.mvlgamma(tensor([True]), 1)
