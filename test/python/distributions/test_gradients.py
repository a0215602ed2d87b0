"""Gradients of samples: dx/dp = -(dF/dp) / (dF/dx) at the sample, by mpmath."""

from __future__ import annotations

import functools

import mpmath as mp
import pytest
import taeda
import taeda.distributions as D
import torch
from references import LINE
from test_accuracy import made

# VonMises samples have no gradient in PyTorch either.
SMOOTH = sorted(name for name in LINE if not LINE[name].discrete and name != "VonMises")
STEP = mp.mpf(10) ** -8


def slope(name: str, i: int, parameter: str, x):
    """The implicit derivative by a parameter, from densities integrated to x."""
    case = LINE[name]

    def below(by):
        law = case.law(i)
        law.p[parameter] += by
        low, high = law.ends
        upper = x > (1 if high == mp.inf else (low + high) / 2)
        return 1 - law.mean_of(lambda y: 1, low=x) if upper else law.cdf(x)

    change = (below(STEP) - below(-STEP)) / (2 * STEP)
    return -change / mp.exp(case.law(i).log(x))


@pytest.mark.parametrize("name", SMOOTH)
def test_implicit_derivatives(name) -> None:
    distribution = made(name, taeda.float64)
    assert distribution.has_rsample
    given = {
        key: taeda.tensor(value, dtype=taeda.float64, requires_grad=True)
        for key, value in LINE[name].parameters.items()
    }
    taeda.manual_seed(1)
    drawn = getattr(D, name)(**given).rsample((2,))
    checked = 0
    for row in range(2):
        found = taeda.autograd.grad(drawn[row].sum(), given.values(), retain_graph=True)
        for (parameter, _), gradient in zip(given.items(), found, strict=True):
            if parameter == "temperature" or name in OTHER_WAY:
                continue
            for i in range(LINE[name].count):
                x = mp.mpf(drawn[row, i].item())
                want = slope(name, i, parameter, x)
                error = abs(gradient[i].item() - want) / max(1, abs(want))
                # Central differences of integrals leave about 1e-9.
                assert error < 1e-7, f"{name} {i} by {parameter} at {x}: {error}"
                checked += 1
    assert checked or name in OTHER_WAY


# A t or F number is a function of two random numbers, each with its own gradient: only
# the mean of the gradients is that of the quantile. Below, by expectations.
OTHER_WAY = {"StudentT", "FisherSnedecor"}


def mean_gradient(distribution, function, parameters):
    """Of the mean of a function of 40000 samples."""
    taeda.manual_seed(2)
    value = function(distribution.rsample((40000,))).mean(0).sum()
    return taeda.autograd.grad(value, parameters)


def test_gradients_of_means() -> None:
    t = lambda v: taeda.tensor(v, dtype=taeda.float64, requires_grad=True)
    df, loc, scale = t(8.0), t(0.5), t(2.0)
    student = D.StudentT(df, loc, scale)
    found = mean_gradient(student, lambda x: x**2, [df, loc, scale])
    # E x^2 = loc^2 + scale^2 df / (df - 2)
    want = [-2 * 4 / 36, 1.0, 2 * 2.0 * 8 / 6]
    assert [g.item() for g in found] == pytest.approx(want, rel=0.06)
    a, b = t(6.0), t(12.0)
    found = mean_gradient(D.FisherSnedecor(a, b), lambda x: x, [a, b])
    assert [g.item() for g in found] == pytest.approx([0, -2 / 100], abs=6e-3)
    weights = t([1.0, 2.0, 4.0])
    found = mean_gradient(D.Dirichlet(weights), lambda x: x[:, 0], [weights])
    assert found[0].tolist() == pytest.approx([6 / 49, -1 / 49, -1 / 49], abs=3e-3)


def test_gamma_gradients_over_the_parameters() -> None:
    shapes = [0.01, 0.3, 1.0, 4.0, 30.0, 999.0, 1001.0, 1e5]
    for a in shapes:
        for quantile in (0.01, 0.4, 0.6, 0.99):
            x = torch.tensor(a, dtype=torch.float64)
            x = _gamma_quantile(a, quantile)
            if x < 1e-250:
                continue
            got = taeda._standard_gamma_grad(
                taeda.tensor(a, dtype=taeda.float64),
                taeda.tensor(x, dtype=taeda.float64),
            )
            with mp.workdps(50):
                want = exact_gamma_slope(mp.mpf(a), mp.mpf(x))
            assert abs(got.item() - want) <= 1e-12 * abs(want), (a, x)


def _gamma_quantile(a: float, p: float) -> float:
    from scipy import stats

    return float(stats.gamma(a).ppf(p))


def exact_gamma_slope(a, x):
    """By differences of mpmath's function, from the nearer end."""
    step = a * mp.mpf(10) ** -16
    ends = (0, x) if x < a else (x, mp.inf)
    sign = -1 if x < a else 1

    def share(shape):
        return mp.gammainc(shape, *ends, regularized=True)

    change = (share(a + step) - share(a - step)) / (2 * step)
    return sign * change / (x ** (a - 1) * mp.exp(-x) / mp.gamma(a))


def test_dirichlet_gradients_over_the_parameters() -> None:
    from scipy import stats

    sizes = [0.01, 0.5, 3.0, 40.0, 2000.0]
    for a in sizes:
        for b in sizes:
            for quantile in (0.1, 0.5, 0.9):
                x = float(stats.beta(a, b).ppf(quantile))
                if not 1e-250 < x < 1:
                    continue
                given = (taeda.tensor(v, dtype=taeda.float64) for v in (x, a, a + b))
                got = taeda._dirichlet_grad(*given).item()
                with mp.workdps(50):
                    want = exact_beta_slope(mp.mpf(x), mp.mpf(a), mp.mpf(a + b) - a)
                # total - alpha is rounded before.
                assert abs(got - want) <= 1e-10 * abs(want), (x, a, b)


def exact_beta_slope(x, a, b):
    """-(dI / da) / (dI / dx) / (1 - x) of the regularised beta function."""
    step = a * mp.mpf(10) ** -16
    ends = (0, x) if x < a / (a + b) else (x, 1)
    sign = -1 if x < a / (a + b) else 1

    def share(shape):
        return mp.betainc(shape, b, *ends, regularized=True)

    change = (share(a + step) - share(a - step)) / (2 * step)
    return sign * change / (x ** (a - 1) * (1 - x) ** b / mp.beta(a, b))


def test_near_pytorch_s_approximations() -> None:
    a = torch.linspace(0.05, 20, 500)
    x = torch.distributions.Gamma(a, 1.0).sample()
    ours = taeda._standard_gamma_grad(*(taeda.from_numpy(v.numpy()) for v in (a, x)))
    theirs = torch._standard_gamma_grad(a, x)
    torch.testing.assert_close(
        torch.from_numpy(ours.numpy()), theirs, rtol=2e-3, atol=0
    )
    alpha, total = torch.tensor([0.7, 2.0, 5.0]).expand(300, 3), torch.tensor(7.7)
    x = torch.distributions.Dirichlet(alpha[0]).sample((300,))
    total = total.expand(300, 3)
    given = (taeda.from_numpy(v.contiguous().numpy()) for v in (x, alpha, total))
    ours = torch.from_numpy(taeda._dirichlet_grad(*given).numpy())
    theirs = torch._dirichlet_grad(x, alpha, total)
    torch.testing.assert_close(ours, theirs, rtol=5e-3, atol=0)


def test_second_derivatives_of_gamma_numbers() -> None:
    a = taeda.tensor([0.5, 3.0, 40.0], dtype=taeda.float64, requires_grad=True)
    x = taeda.tensor([0.4, 3.5, 38.0], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(taeda._standard_gamma_grad, (a, x))
    for function in (taeda.igamma, taeda.igammac):
        end_alone = functools.partial(function, a.detach())
        assert taeda.autograd.gradgradcheck(end_alone, (x,))
        with pytest.raises(NotImplementedError, match="igammac?: input"):
            function(a, x).sum().backward()


def test_a_missing_derivative_is_refused() -> None:
    a = taeda.tensor([1.0, 2.0], requires_grad=True)
    drawn = taeda._sample_dirichlet(a)
    (slope,) = taeda.autograd.grad(drawn[0], a, create_graph=True)
    with pytest.raises(RuntimeError, match="_dirichlet_grad is not implemented"):
        slope.sum().backward()


def test_ends() -> None:
    g = lambda a, x: taeda._standard_gamma_grad(*map(taeda.tensor, (a, x))).item()
    assert g(2.0, 0.0) == 0 and str(g(0.0, 1.0)) == "nan"
    assert str(g(2.0, float("inf"))) == "nan"
    d = lambda *v: taeda._dirichlet_grad(*map(taeda.tensor, v)).item()
    assert d(0.0, 1.0, 2.0) == 0 and d(1.0, 1.0, 2.0) == pytest.approx(1.0)
    with pytest.raises(RuntimeError, match="expected concentrations along a dim"):
        taeda._sample_dirichlet(taeda.tensor(1.0))
    for refused in (taeda._sample_dirichlet, taeda._standard_gamma):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            refused(taeda.tensor([1, 2]))


def member_of(make, member: str, *value):
    """A function of a parameter: a member of the distribution that has it."""

    def function(parameter):
        found = getattr(make(parameter), member)
        return found(*value) if value else found

    return function


@pytest.mark.parametrize("member", ["log_prob", "cdf", "icdf", "mean", "variance"])
def test_gradients_where_a_formula_has_a_gap(member) -> None:
    z = lambda v: taeda.tensor(v, dtype=taeda.float64, requires_grad=True)
    value = [taeda.tensor(0.25, dtype=taeda.float64)]
    value = [] if member in ("mean", "variance") else value
    tilted = member_of(lambda t: D.ContinuousBernoulli(logits=t), member, *value)
    assert taeda.autograd.gradcheck(tilted, (z([0.0, 0.9999, 1.0001, -3.0]),))
    excess = member_of(lambda k: D.GeneralizedPareto(0.0, 1.0, k), member, *value)
    assert taeda.autograd.gradcheck(excess, (z([0.25, -0.25, 1e-3]),))
    # At k = 0 the derivative is the limit of those beside it.
    slopes = [taeda.autograd.grad(excess(k), k)[0].item() for k in (z(0.0), z(1e-6))]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-4), member
