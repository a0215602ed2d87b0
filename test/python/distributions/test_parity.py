"""The interface is PyTorch's: names, signatures, classes, regions, maps, subclasses."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil

import numpy
import pytest
import taeda
import taeda.distributions as D
import torch
import torch.distributions as theirs
from references import LINE
from test_accuracy import made

CLASSES = sorted(n for n in theirs.__all__ if inspect.isclass(getattr(theirs, n)))


def test_names_and_modules() -> None:
    assert set(theirs.__all__) <= set(D.__all__)
    found = [m.name for m in pkgutil.iter_modules(theirs.__path__)]
    assert len(found) == 47
    for name in found:
        module = importlib.import_module(f"taeda.distributions.{name}")
        for each in importlib.import_module(f"torch.distributions.{name}").__all__:
            assert hasattr(module, each), f"{name}.{each}"


def test_modules_have_the_bases_of_their_classes() -> None:
    from taeda.distributions.chi2 import Gamma
    from taeda.distributions.multivariate_normal import Distribution, lazy_property

    assert Gamma is D.Gamma and Distribution is D.Distribution
    assert lazy_property is D.utils.lazy_property
    for name in [m.name for m in pkgutil.iter_modules(theirs.__path__)]:
        there = vars(importlib.import_module(f"torch.distributions.{name}"))
        here = vars(importlib.import_module(f"taeda.distributions.{name}"))
        for kind in [there[each] for each in there["__all__"] if each in CLASSES]:
            bases = [c for c in kind.__mro__ if issubclass(c, theirs.Distribution)]
            shared = {c.__name__ for c in bases if c in there.values()}
            assert shared <= set(here), name
        assert not {k for k in here if k in ("Expanding", "Scattered")}, name


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name) -> None:
    ours, other = getattr(D, name), getattr(theirs, name)
    signatures = [inspect.signature(kind.__init__) for kind in (ours, other)]
    names, defaults = zip(
        *(
            ([*s.parameters], [repr(p.default) for p in s.parameters.values()])
            for s in signatures
        ),
        strict=True,
    )
    assert names[0] == names[1]
    if name not in ("Distribution", "ExponentialFamily"):
        assert defaults[0] == [text.replace("torch", "taeda") for text in defaults[1]]
    bases = [{k.__name__ for k in kind.__mro__} for kind in (ours, other)]
    assert bases[1] - {"Generic"} <= bases[0]
    missing = {m for m in dir(other) if m[0] != "_"} - set(dir(ours))
    assert not missing
    for flag in ("has_rsample", "has_enumerate_support", "bijective"):
        if isinstance(getattr(other, flag, None), bool):
            assert getattr(ours, flag) == getattr(other, flag), flag


@pytest.mark.parametrize("name", CLASSES)
def test_documentation_tells_of_each_parameter(name) -> None:
    kind = getattr(D, name)
    names = [n for n in inspect.signature(kind).parameters if n != "validate_args"]
    text = inspect.getdoc(kind)
    places = [text.find(f"\n    {n}: ") for n in names]
    own = [k.__init__ for k in kind.__mro__].count(kind.__init__) == 1
    assert min(places, default=0) >= 0 or not own
    sections = [text.find(f"\n{s}:") for s in ("Args", "Raises", "Example")]
    assert [s for s in sections if s >= 0] == sorted(s for s in sections if s >= 0)


REGIONS = {
    name: getattr(theirs.constraints, name)
    for name in theirs.constraints.__all__
    if isinstance(getattr(theirs.constraints, name), theirs.constraints.Constraint)
    and not name.startswith("dependent")
}
MADE = {
    "greater_than": (0.5,),
    "greater_than_eq": (0.5,),
    "less_than": (0.5,),
    "interval": (-0.5, 0.5),
    "half_open_interval": (-0.5, 0.5),
    "integer_interval": (0, 2),
    "multinomial": (2,),
}
VALUES = [
    [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[1.0, 0, 0], [0.6, 0.8, 0], [0.48, 0.6, 0.64]],
    [[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]],
    [[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]],
    [[-0.5, 0.5, float("nan")], [-3, 7, 0.25], [1, 1, 1]],
]


def regions():
    """(name, ours, theirs) of every region."""
    for name in REGIONS:
        yield name, getattr(D.constraints, name), REGIONS[name]
    for name, bounds in MADE.items():
        pair = (getattr(m, name)(*bounds) for m in (D.constraints, theirs.constraints))
        yield name, *pair
    for count in (1, 2):
        pair = (
            m.independent(m.positive, count)
            for m in (D.constraints, theirs.constraints)
        )
        yield f"independent {count}", *pair
    for name in ("cat", "stack"):
        pair = (
            getattr(m, name)([m.positive, m.real, m.unit_interval], 0)
            for m in (D.constraints, theirs.constraints)
        )
        yield name, *pair


def test_regions() -> None:
    cells = 0
    for name, ours, other in regions():
        facts = [(r.is_discrete, r.event_dim) for r in (ours, other)]
        assert facts[0] == facts[1], name
        if name not in ("cat", "stack"):
            assert repr(ours) == repr(other)
        for values in VALUES:
            got = ours.check(taeda.tensor(values)).tolist()
            assert got == other.check(torch.tensor(values)).tolist(), (name, values)
            cells += 1
        for table in ("biject_to", "transform_to"):
            cells += 1
            check_map(name, getattr(D, table), getattr(theirs, table), ours, other)
    assert cells == 7 * len(list(regions())) == 7 * 28


def check_map(name: str, table, other_table, ours, other) -> None:
    """The map to a region: values, inverse, Jacobian, text; or the same refusal."""
    try:
        want = other_table(other)
    except NotImplementedError as error:
        with pytest.raises(NotImplementedError) as caught:
            table(ours)
        assert str(caught.value) == str(error)
        return
    got = table(ours)
    assert repr(got) == repr(want)
    x = numpy.linspace(-1, 1, 9).reshape(3, 3)
    x, x_other = taeda.tensor(x), torch.tensor(x)
    y, y_other = got(x), want(x_other)
    same(y, y_other, name)
    same(got.inv(y), want.inv(y_other), name)
    assert got.bijective == want.bijective
    if want.bijective and not isinstance(want, theirs.CatTransform):
        try:
            slope = want.log_abs_det_jacobian(x_other, y_other)
        except NotImplementedError:
            return
        same(got.log_abs_det_jacobian(x, y), slope, name)
        assert got.forward_shape(x.shape) == tuple(want.forward_shape(x_other.shape))


def same(got, want, what: str) -> None:
    """Equal but for some roundings."""
    assert got.shape == tuple(want.shape), what
    numpy.testing.assert_allclose(
        got.numpy(), want.numpy(), rtol=1e-11, atol=1e-11, err_msg=what
    )


@pytest.mark.parametrize("name", LINE)
def test_one_program_on_both(name) -> None:
    given = LINE[name].parameters
    other = getattr(theirs, name)(**{k: torch.tensor(v) for k, v in given.items()})
    ours = made(name, taeda.float32)
    assert repr(ours) == repr(other).replace("torch", "taeda")
    assert repr(ours.support) == repr(other.support).replace("torch", "taeda")
    for shape in ((4, LINE[name].count), (2, 1, LINE[name].count)):
        wide, wide_other = ours.expand(shape), other.expand(shape)
        assert type(wide) is type(ours)
        assert wide.batch_shape == tuple(wide_other.batch_shape)
        assert repr(wide) == repr(wide_other).replace("torch", "taeda")
        x = LINE[name].values[1]
        want = wide_other.log_prob(torch.tensor(x)).numpy()
        got = wide.log_prob(taeda.tensor(x)).numpy()
        numpy.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    kept = pickle.loads(pickle.dumps(ours))
    assert type(kept) is type(ours) and repr(kept) == repr(ours)
    assert (kept.log_prob(taeda.tensor(x)) == ours.log_prob(taeda.tensor(x))).all()
    if other.has_enumerate_support:
        for expand in (True, False):
            got = ours.enumerate_support(expand=expand)
            assert got.tolist() == other.enumerate_support(expand=expand).tolist()
    if not name.startswith("Relaxed"):
        outside = taeda.tensor(float("nan"))
        with pytest.raises(ValueError, match="to be within the support"):
            ours.log_prob(outside)


def test_users_subclass() -> None:
    class Shifted(D.Normal):
        arg_constraints = {"loc": D.constraints.real, "scale": D.constraints.positive}

        @property
        def mean(self):
            return self.loc + 1

    wide = Shifted(0.0, 1.0).expand((3,))
    assert type(wide) is Shifted and wide.mean.tolist() == [1, 1, 1]
    assert wide.variance.tolist() == [1, 1, 1] and wide.entropy().shape == (3,)

    class Named(D.Normal):
        def __init__(self, loc, name="x"):
            self.name = name
            super().__init__(loc, 1.0)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Named, _instance)
            new.name = self.name
            return super().expand(batch_shape, _instance=new)

    assert Named(0.0, "y").expand((2,)).name == "y"

    class Forgetful(D.Gumbel):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    with pytest.raises(NotImplementedError, match="Subclass Forgetful of Gumbel"):
        Forgetful(0.0).expand((2,))

    class Own(D.ExponentialFamily):
        arg_constraints = {"rate": D.constraints.positive}
        support = D.constraints.nonnegative
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, t):
            return -(-t).log()

    rate = taeda.tensor([0.5, 2.0])
    want = D.Exponential(rate)
    assert taeda.allclose(Own(rate).entropy(), want.entropy())
    other = Own(taeda.tensor([1.0, 1.0]))
    found = D.kl_divergence(Own(rate), other)
    assert taeda.allclose(found, D.kl_divergence(want, D.Exponential(other.rate)))


def test_parameters_under_vmap() -> None:
    x, loc = taeda.tensor([0.5, -1.0, 2.0]), taeda.tensor([0.0, 1.0, 3.0])
    for kind in (D.Normal, D.Laplace, D.Cauchy):
        density = lambda m, v, kind=kind: kind(m, 1.0, validate_args=False).log_prob(v)
        found = taeda.func.vmap(density)(loc, x)
        assert taeda.allclose(found, kind(loc, 1.0).log_prob(x))
