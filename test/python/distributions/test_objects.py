"""Distributions and maps as objects: pickled, copied, compared, subclassed."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import taeda
import taeda.distributions as D
import torch
from distribution_cases import CASES
from taeda.distributions import constraints

X = [[-0.5, 0.25, 1.0], [0.5, -1.0, 2.0]]
MAPS = {
    "exp": lambda: D.ExpTransform(),
    "power": lambda: D.PowerTransform(taeda.tensor([2.0, 1.0, 0.5])),
    "affine": lambda: D.AffineTransform(taeda.tensor([1.0, 2.0, 3.0]), 2.0),
    "affine of vectors": lambda: D.AffineTransform(1.0, 2.0, event_dim=1),
    "compose": lambda: D.ComposeTransform([D.ExpTransform(), D.PowerTransform(2.0)]),
    "independent": lambda: D.IndependentTransform(D.TanhTransform(), 1),
    "reshape": lambda: D.ReshapeTransform((3,), (1, 3)),
    "cat": lambda: D.CatTransform(
        [D.ExpTransform(), D.SigmoidTransform()], dim=-1, lengths=[1, 2]
    ),
    "stack": lambda: D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], 0),
    "distribution": lambda: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)),
    "correlation": lambda: D.CorrCholeskyTransform(),
    "stick": lambda: D.StickBreakingTransform(),
    "inverse": lambda: D.AffineTransform(1.0, 2.0).inv,
}
# Those that are equal to another one that was made alike.
ALIKE = {"exp", "power", "affine", "affine of vectors", "compose", "stick", "inverse"}


def value(transform):
    """A value in its domain."""
    x = taeda.tensor(X)
    return x.abs() if isinstance(transform, D.PowerTransform) else x


@pytest.mark.parametrize("name", MAPS)
def test_maps_are_copied_whole(name) -> None:
    transform = MAPS[name]()
    x = value(transform)
    y = transform(x)
    for other in (pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)):
        assert type(other) is type(transform) and repr(other) == repr(transform)
        assert (other(x) == y).all()
        assert (other.inv(y) == transform.inv(y)).all()
    assert transform == transform and transform.inv.inv is transform
    assert (transform == MAPS[name]()) == (name in ALIKE)
    assert transform != D.AbsTransform()


@pytest.mark.parametrize("name", MAPS)
def test_maps_with_a_cache(name) -> None:
    transform = MAPS[name]()
    x, kept = value(transform), transform.with_cache()
    assert type(kept) is type(transform) and kept.with_cache() is kept
    y = kept(x)
    assert (y == transform(x)).all()
    if name not in ("compose", "inverse"):
        assert kept(x) is y
    if name != "inverse":
        assert kept.inv(y) is x
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        kept.with_cache(2)


def test_arguments_are_attributes() -> None:
    affine = D.AffineTransform(1.0, 2.0, 1)
    assert (affine.loc, affine.scale, affine.event_dim) == (1.0, 2.0, 1)
    assert affine.domain.event_dim == affine.codomain.event_dim == 1
    parts = D.CatTransform([D.ExpTransform(), D.TanhTransform()], lengths=(1, 2))
    assert (parts.dim, parts.lengths, parts.length) == (0, [1, 2], 3)
    assert [type(t) for t in parts.transforms] == [D.ExpTransform, D.TanhTransform]
    reshaped = D.ReshapeTransform([2, 3], [6])
    assert isinstance(reshaped.in_shape, taeda.Size) and reshaped.out_shape == (6,)
    assert D.PowerTransform(2).exponent == taeda.tensor(2.0)
    wide = D.IndependentTransform(D.ExpTransform(), reinterpreted_batch_ndims=2)
    assert wide.reinterpreted_batch_ndims == 2 and wide.domain.event_dim == 2
    with pytest.raises(TypeError):
        D.AffineTransform(1.0)
    with pytest.raises(TypeError):
        D.Independent(D.Normal(0.0, 1.0), 0, wrong=1)


def test_users_maps() -> None:
    class Twice(D.Transform):
        domain = codomain = constraints.real
        bijective = True

        def __init__(self, factor=2.0, cache_size=0):
            super().__init__(cache_size=cache_size)
            self.factor = factor

        def _call(self, x):
            return self.factor * x

        def _inverse(self, y):
            return y / self.factor

        def log_abs_det_jacobian(self, x, y):
            return taeda.full_like(x, self.factor).log()

    made = D.TransformedDistribution(D.Normal(0.0, 1.0), Twice())
    want = D.Normal(0.0, 2.0).log_prob(taeda.tensor(0.5))
    assert taeda.allclose(made.log_prob(taeda.tensor(0.5)), want)
    with pytest.raises(NotImplementedError, match="with_cache is not implemented"):
        Twice().with_cache()

    class Shift(D.AffineTransform):
        def _call(self, x):
            return super()._call(x) + 1

    shift = Shift(1.0, 2.0, cache_size=1)
    x = taeda.tensor(3.0)
    assert shift(x) == 8 and shift(x) is shift(x)
    assert type(shift.with_cache(0)) is Shift


@pytest.mark.parametrize("name", CASES)
def test_distributions_are_copied_whole(name) -> None:
    made = CASES[name](taeda, D)
    taeda.manual_seed(1)
    x = made.sample()
    others = [copy.deepcopy(made)]
    if name != "transformed":
        others.append(pickle.loads(pickle.dumps(made)))
    density = made.log_prob(x)
    for other in others:
        assert type(other) is type(made)
        assert (other.log_prob(x) == density).all() and repr(other) == repr(made)
        taeda.manual_seed(1)
        assert (other.sample() == x).all()
    # Once more through an expanded one, whose checks are as before.
    wide = made.expand((2, *made.batch_shape))
    assert wide.batch_shape == (2, *made.batch_shape)
    assert wide.event_shape == made.event_shape
    again = pickle.loads(pickle.dumps(wide)) if name != "transformed" else wide
    assert repr(again) == repr(wide)
    taeda.testing.assert_close(
        again.log_prob(x), made.log_prob(x).expand(2, *made.batch_shape)
    )


def test_wrappers_hold_what_they_were_given() -> None:
    normal = D.Normal(taeda.zeros(4, 2), 1.0)
    events = D.Independent(normal, 1)
    assert events.base_dist is normal and events.reinterpreted_batch_ndims == 1
    wide = events.expand((3, 4))
    assert type(wide) is D.Independent and wide.base_dist.batch_shape == (3, 4, 2)
    shown = "taeda.Size([3, 4, 2])"
    assert repr(wide) == f"Independent(Normal(loc: {shown}, scale: {shown}), 1)"
    mixture = D.MixtureSameFamily(
        D.Categorical(taeda.ones(4)), D.Independent(normal, 1)
    )
    assert mixture.mixture_distribution.batch_shape == ()
    assert mixture.component_distribution.batch_shape == (4,)
    wide = mixture.expand((5,))
    assert wide.mixture_distribution.batch_shape == (5,)
    assert wide.component_distribution.batch_shape == (5, 4)
    assert wide.sample((3,)).shape == (3, 5, 2)
    for name in ("mixture_distribution", "component_distribution"):
        with pytest.raises(AttributeError):
            setattr(mixture, name, None)
    twice = D.TransformedDistribution(normal, D.AffineTransform(0.0, 2.0))
    assert twice.base_dist is normal and len(twice.transforms) == 1
    # The list of a chain is the caller's own.
    steps = [D.TanhTransform()]
    assert D.TransformedDistribution(normal, steps).transforms == steps


def test_users_subclass_wrappers() -> None:
    class Squashed(D.TransformedDistribution):
        def __init__(self, loc, scale, validate_args=None):
            self.base = D.Normal(loc, scale)
            super().__init__(
                self.base, [D.TanhTransform()], validate_args=validate_args
            )

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Squashed, _instance)
            new.base = self.base.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

        @property
        def mean(self):
            return self.base.mean.tanh()

    made = Squashed(taeda.zeros(2), 1.0)
    x = made.rsample((3,))
    assert x.shape == (3, 2) and made.log_prob(x).shape == (3, 2)
    wide = made.expand((4, 2))
    assert type(wide) is Squashed and wide.base.batch_shape == (4, 2)
    assert wide.mean.shape == wide.sample().shape == (4, 2)

    class Forgetful(D.Independent):
        def __init__(self, base):
            super().__init__(base, 1)

    with pytest.raises(NotImplementedError, match="Subclass Forgetful of Independent"):
        Forgetful(made).expand((3,))

    class Named(D.MixtureSameFamily):
        """A mixture that remembers its name."""

        name = "x"

    mixture = Named(D.Categorical(taeda.ones(2)), D.Normal(taeda.zeros(2), 1.0))
    assert type(mixture.expand((3,))) is Named


def test_users_densities() -> None:
    class Traced(D.Normal):
        def log_prob(self, value):
            return super().log_prob(value) - 1

        def rsample(self, sample_shape=()):
            return super().rsample(sample_shape) + 10

    made = Traced(taeda.zeros(2), 1.0)
    x = taeda.tensor(0.5)
    want = D.Normal(taeda.zeros(2), 1.0).log_prob(x) - 1
    assert (made.log_prob(x) == want).all()
    assert made.rsample().min() > 4
    assert taeda.allclose(D.Independent(made, 1).log_prob(x), want.sum())
    assert taeda.allclose(made.expand((3, 2)).log_prob(x), want.expand(3, 2))

    class Plain(D.Distribution):
        arg_constraints = {}
        support = constraints.real

        def log_prob(self, value):
            return -value.abs()

    plain = Plain()
    assert plain.log_prob(x) == -0.5 and plain._validate_args
    with pytest.raises(NotImplementedError, match="Plain does not implement rsample"):
        plain.sample()
    with pytest.raises(NotImplementedError, match="Plain does not implement expand"):
        plain.expand((2,))

    class Silent(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        Silent()


def test_whether_arguments_are_checked() -> None:
    bad, good = taeda.tensor(-1.0), D.Normal(0.0, 1.0)
    assert D.Normal(0.0, bad, validate_args=False).scale == bad
    before = D.Distribution._validate_args
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, bad).scale == bad
        assert D.Exponential(1.0).log_prob(bad).isfinite()
        with pytest.raises(ValueError, match="to satisfy the constraint"):
            D.Normal(0.0, bad, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(before)
    with pytest.raises(
        ValueError, match=r"parameter scale \(Tensor of shape \(\)\) of"
    ):
        D.Normal(0.0, bad)
    for wrapped in (
        D.Independent(good.expand((2,)), 1, validate_args=False),
        D.TransformedDistribution(good, D.ExpTransform(), validate_args=False),
        D.LogNormal(0.0, 1.0, validate_args=False),
    ):
        assert wrapped._validate_args is False
        assert wrapped.expand((3, *wrapped.batch_shape))._validate_args is False


@pytest.mark.parametrize("name", sorted(D.__all__))
def test_documentation(name) -> None:
    each = getattr(D, name)
    if inspect.isclass(each):
        assert inspect.getdoc(each)
        for member in vars(each).keys() & vars(D.Distribution).keys():
            if not member.startswith("_") and inspect.isfunction(vars(each)[member]):
                assert inspect.getdoc(getattr(each, member)), f"{name}.{member}"


def test_modules_show_their_classes() -> None:
    for name in D.__all__:
        each = getattr(D, name)
        if inspect.isclass(each):
            module = __import__(each.__module__, fromlist=[name])
            assert getattr(module, name) is each
            assert each.__module__.startswith("taeda.distributions.")


DRAWN = {
    "Normal": lambda m: D.Normal(m, 1.0, validate_args=False),
    "Uniform": lambda m: D.Uniform(m, m + 1, validate_args=False),
    "StudentT": lambda m: D.StudentT(3.0, m, validate_args=False),
    "MultivariateNormal": lambda m: D.MultivariateNormal(
        m.expand(2), scale_tril=taeda.eye(2), validate_args=False
    ),
    "LogNormal": lambda m: D.LogNormal(m, 1.0, validate_args=False),
}


@pytest.mark.parametrize("name", DRAWN)
def test_samples_under_vmap(name) -> None:
    def draw(m):
        return DRAWN[name](m).rsample((5,))

    x = taeda.zeros(3)
    found = {
        kind: taeda.func.vmap(draw, randomness=kind)(x)
        for kind in ("same", "different")
    }
    assert found["same"].shape[:2] == found["different"].shape[:2] == (3, 5)
    assert (found["same"][0] == found["same"][1]).all()
    assert (found["different"][0] != found["different"][1]).all()


def test_vectors_shown_as_matrices_keep_their_number_of_dims() -> None:
    """Packages derive normal matrices from normal vectors in this way."""

    def numbers(library):
        class Matrices(library.distributions.MultivariateNormal):
            event_shape = property(lambda self: library.Size([2, 2]))

        vectors = Matrices(library.zeros(4), library.eye(4) * 2)
        at = library.distributions.MultivariateNormal.log_prob(vectors, vectors.loc)
        return [vectors.entropy().item(), at.item()]

    assert numbers(taeda) == pytest.approx(numbers(torch), rel=1e-6)
