"""How a distribution's class follows from what it declares.

A class states `arg_constraints = parameters("a b", first=..., second=...)`: constraints
of the constructor's parameters in its order, and a symbol for each. Its formulas are
functions whose arguments are symbols, other members, and `x` (a value) or `shape` where
the member is called with one: they say the mathematics and nothing else. Constructor,
broadcasting, checks, expansion and shapes follow; a parameter has as many event dims as
its constraint. README.md has an example.
"""

from __future__ import annotations

from functools import reduce, wraps

import taeda
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def _arguments(function) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


class parameters(dict):
    """Constraints by parameter; `symbols` are their names in formulas."""

    def __init__(self, symbols: str = "", /, **table) -> None:
        super().__init__(table)
        self.symbols = dict(zip(symbols.split(), table, strict=True))

    def __set_name__(self, owner, name: str) -> None:
        ranks = {n: constraint.event_dim for n, constraint in self.items()}
        _declare(owner, ranks, self.symbols)


class dependent_parameters(property):
    """The same where constraints depend on other parameters.

    Args:
        function: of the distribution; gives the constraints.
        ranks: event dims of each parameter.
    """

    def __init__(self, function, **ranks: int) -> None:
        super().__init__(function)
        self.ranks = ranks

    def __set_name__(self, owner, name: str) -> None:
        _declare(owner, self.ranks, {n: n for n in self.ranks})


def _declare(owner, ranks: dict, symbols: dict) -> None:
    owner._declaring, owner._symbols = owner, symbols
    if "_ranks" not in vars(owner):
        owner._ranks = ranks
    if "__init__" in vars(owner) or not hasattr(owner, "_adopt"):
        return
    # A function of exactly these parameters, as `dataclasses` makes it.
    defaults = owner._defaults
    given = [f"{n}={defaults[n]}" if n in defaults else n for n in ranks]
    kept = ", ".join(f"{n}={n}" for n in ranks)
    space: dict = {}
    exec(
        f"def __init__(self, {', '.join(given)}, validate_args=None):\n"
        f"    self._adopt(validate_args, {kept})\n",
        space,
    )
    owner.__init__ = space["__init__"]
    owner.__init__.__qualname__ = f"{owner.__qualname__}.__init__"


def in_double(function):
    """Evaluates a formula of narrower numbers in float64, where its terms cancel."""

    @wraps(function)
    def evaluate(*arguments):
        narrow = [a for a in arguments if isinstance(a, taeda.Tensor)]
        types = {a.dtype for a in narrow if a.is_floating_point()}
        if not types or taeda.float64 in types:
            return function(*arguments)
        wide = (
            a.double() if isinstance(a, taeda.Tensor) and a.dtype in types else a
            for a in arguments
        )
        return function(*wide).to(reduce(taeda.promote_types, types))

    return evaluate


class formula:
    """A member given by a function of parameters; see the module."""

    lazy = False

    def __init__(self, function) -> None:
        self.names, self.function = _arguments(function), function

    def __set_name__(self, owner, name: str) -> None:
        symbols = owner._symbols
        self.names = tuple(symbols.get(n, n) for n in self.names)
        member = self._member(name)
        member.__name__, member.__qualname__ = name, f"{owner.__qualname__}.{name}"
        member.__doc__ = getattr(getattr(Distribution, name, None), "__doc__", None)
        if name != "entropy" and not {"x", "shape"} & set(self.names):
            member = (lazy_property if self.lazy else property)(member)
        setattr(owner, name, member)
        if name == "rsample":
            owner.has_rsample = True

    def _member(self, name: str):
        function, names = self.function, self.names

        def evaluate(self, **given):
            given["self"] = self
            values = (given[n] if n in given else getattr(self, n) for n in names)
            return function(*values)

        def of_value(self, value):
            if name != "icdf" and self._validate_args:
                self._validate_sample(value)
            return evaluate(self, x=value)

        def of_shape(self, sample_shape=()):
            # A `sample` of its own is one that has no gradient.
            wanted = name == "rsample" and taeda.is_grad_enabled()
            with taeda.set_grad_enabled(wanted):
                return evaluate(self, shape=self._extended_shape(sample_shape))

        kinds = {"x": of_value, "shape": of_shape}
        plain = lambda self: evaluate(self)
        return next((kinds[n] for n in names if n in kinds), plain)


class lazy(formula):
    """A formula whose result is kept, as `lazy_property` does."""

    lazy = True


class wide(formula):
    """A formula that is evaluated in float64, because its terms cancel."""

    def __init__(self, function) -> None:
        super().__init__(function)
        self.function = in_double(function)


def region(function, is_discrete: bool = False, event_dim: int = 0):
    """A support that depends on members, by a function of them."""
    names = _arguments(function)
    decorate = constraints.dependent_property(
        is_discrete=is_discrete, event_dim=event_dim
    )
    return decorate(lambda self: function(*[getattr(self, n) for n in names]))


def of(attribute: str, name: str):
    """A property that is another object's."""
    return property(lambda self: getattr(getattr(self, attribute), name))


def exactly_one(**choices) -> tuple[str, object]:
    """The name and value of the only choice that was made.

    Raises:
        ValueError: there is none, or several.
    """
    made = [(name, value) for name, value in choices.items() if value is not None]
    if len(made) != 1:
        names = " or ".join(f"`{name}`" for name in choices)
        raise ValueError(f"Either {names} must be specified, but not both.")
    return made[0]


class Expanding(Distribution):
    """A distribution whose expansion follows from its declaration.

    `_nested` names attributes that are distributions with (at least) its batch dims,
    `_kept` those that stay as they are.
    """

    _ranks: dict[str, int] = {}
    _symbols: dict[str, str] = {}
    _defaults: dict[str, object] = {}
    _nested: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()

    def expand(self, batch_shape, _instance=None):
        """The same distribution with a larger batch shape."""
        new = self._get_checked_instance(self._declaring, _instance)
        batch = taeda.Size(batch_shape)
        self._expand_into(new, batch)
        Distribution.__init__(new, batch, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new, batch) -> None:
        held = vars(self)
        for name, rank in self._ranks.items():
            if name in held:
                event = held[name].shape[held[name].dim() - rank :]
                setattr(new, name, held[name].expand(batch + event))
        for name in self._kept:
            setattr(new, name, held[name])
        for name in self._nested:
            more = held[name].batch_shape[len(self._batch_shape) :]
            setattr(new, name, held[name].expand(batch + more))


class Scalar(Expanding):
    """Base of distributions of numbers; their parameters broadcast to the batch."""

    def _adopt(self, validate_args, **given) -> None:
        """Broadcast the parameters, keep them, and check them."""
        for name, value in zip(given, broadcast_all(*given.values()), strict=True):
            setattr(self, name, value)
            shape = value.shape
        Distribution.__init__(self, shape, validate_args=validate_args)
        self._complete()

    def _complete(self) -> None:
        """What else a constructor makes."""


class ProbsOrLogits(Scalar):
    """Base of those given by probabilities or by their logits.

    `_binary` says whether each number is a probability by itself, or the numbers along
    the last dim are those of one variable.
    """

    _binary = True
    _kept = ("_given",)
    _defaults = {"probs": None, "logits": None}
    probs = lazy(lambda logits, _binary: logits_to_probs(logits, _binary))
    logits = lazy(lambda probs, _binary: probs_to_logits(probs, _binary))
    _param = formula(lambda self: vars(self)[self._given])
    param_shape = formula(lambda _param: _param.size())

    def _adopt(self, validate_args, probs, logits, **others) -> None:
        self._given, value = exactly_one(probs=probs, logits=logits)
        *rest, value = broadcast_all(*others.values(), value)
        for name, other in zip(others, rest, strict=True):
            setattr(self, name, other.type_as(value))
        setattr(self, self._given, value)
        Distribution.__init__(self, value.shape, validate_args=validate_args)
        self._complete()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)


class OfCategorical(Expanding):
    """Base of vectors made of a categorical distribution's numbers."""

    _nested = ("_categorical",)
    probs = of("_categorical", "probs")
    logits = of("_categorical", "logits")
    param_shape = of("_categorical", "param_shape")
    _param = of("_categorical", "_param")
    _new = of("_categorical", "_new")

    def _adopt_categorical(self, categorical, validate_args) -> None:
        self._categorical = categorical
        *batch, count = categorical.param_shape
        Distribution.__init__(self, batch, (count,), validate_args=validate_args)


class ScalarFamily(Scalar, ExponentialFamily):
    """Base of distributions of numbers that are exponential families as well."""


def enumerated(distribution, values, expand: bool):
    """Values along a new first dim, each for the whole batch if `expand`."""
    batch, event = distribution.batch_shape, distribution.event_shape
    values = values.reshape(-1, *(1 for _ in batch), *event)
    return values.expand(-1, *batch, *event) if expand else values
