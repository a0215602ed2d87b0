"""How classes follow from what they declare.

A class lists its constructor's parameters, each with its symbol in formulas, constraint
and meaning: `scale = parameter("s", positive, "the width")`; a distribution names its
support too. A function of its body whose first argument is not `self` is a formula. Its
arguments are symbols, other members, and what the member is called with: `x` a value,
`z` = (x - loc) / scale, `shape` of samples, `size` without the batch's and the event's
dims. It says the mathematics and nothing else. Constructor, documentation, checks,
broadcasting, expansion and shapes follow; a parameter has as many event dims as its
constraint. README.md has an example.
"""

from __future__ import annotations

from functools import cache, partial, reduce
from operator import attrgetter
from types import FunctionType

import taeda

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def _arguments(function) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _reader(names, symbols: dict[str, str]):
    """The function of an object that gives the tuple of these members."""
    known = [symbols.get(name, name) for name in names]
    get = attrgetter(*known) if known else lambda self: ()
    return get if len(known) != 1 else lambda self: (get(self),)


def _of_members(function, symbols: dict[str, str]):
    """The function of an object that calls this one of its members."""
    read = _reader(_arguments(function), symbols)
    return lambda self: function(*read(self))


def of(attribute: str, *names: str):
    """A property that is another object's, or several."""
    doc = f"That of `{attribute}`."
    found = [property(attrgetter(f"{attribute}.{n}"), doc=doc) for n in names]
    return found if len(found) > 1 else found[0]


class parameter:
    """A parameter of a constructor.

    Args:
        symbol: its name in formulas.
        constraint: a region, or a function of members that gives one; None for what an
            attribute keeps as it was given.
        meaning: what the documentation says of it.
        source: who has it if the object itself does not: the name of an attribute, or a
            function of members.
        held: the attribute that keeps it as it was given, if not one of its name.
        default: its value when absent.
    """

    def __init__(self, symbol, constraint, meaning, source=None, held=None, **default):
        self.symbol, self.constraint, self.meaning = symbol, constraint, meaning
        self.source, self.held, self.default = source, held, default
        self.rank = getattr(constraint, "event_dim", 0)
        self.moving = isinstance(constraint, FunctionType)

    def __set_name__(self, owner, name: str) -> None:
        self.held = self.held or name
        if self.symbol:
            # Before the formulas, which stand behind the parameters.
            inherited = super(owner, owner)._symbols
            owner._symbols = inherited | owner._symbols | {self.symbol: name}

    def described(self, name: str) -> str:
        """Its line of the documentation."""
        if self.constraint is None:
            return f"{name}: {self.meaning}."
        shape = ("batch_shape", "(*batch_shape, n)", "(*batch_shape, n, m)")[self.rank]
        region = "" if self.moving else f" {self.constraint!r}."
        return f"{name}: {self.meaning}. Shape: {shape}.{region}"


# One that is kept as it was given, without a symbol.
argument = partial(parameter, None, None)
_LOGIT = constraints.real, "its logit, in place of it"


def odds(meaning: str, probs=constraints.unit_interval, source=None, logits=_LOGIT):
    """Parameters: the probability of an event, or its logit."""
    given = {"source": source, "default": None}
    return parameter("p", probs, meaning, **given), parameter("t", *logits, **given)


def weights(places: str, source=None):
    """Parameters: weights along the last dim, or their logarithms."""
    meaning = f"weights of the {places} along the last dim; they are normalised"
    other = constraints.real_vector, "logarithms of weights, in place of them"
    return odds(meaning, constraints.simplex, source, other)


def construct(owner, last: str, default=None, closing: str = "") -> dict:
    """Make a class's constructor and documentation of its parameters, and return those.

    The constructor has one more parameter, the last. It calls the class's `_adopt` with
    that and with those that no attribute keeps. Methods that are rows get their names.
    """
    for name, value in vars(owner).items():
        if isinstance(value, FunctionType) and value.__name__ == "<lambda>":
            value.__name__, value.__qualname__ = name, f"{owner.__qualname__}.{name}"
    own = {n: v for n, v in vars(owner).items() if isinstance(v, parameter)}
    if not own:
        return own
    # Those with a default value come last.
    order = sorted(own, key=lambda name: bool(own[name].default))
    kept = {n: p.held for n, p in own.items() if not (p.constraint or p.source)}
    for name in own:
        delattr(owner, name)
        if kept.get(name, name) == f"_{name}":
            get = attrgetter(kept[name])
            setattr(owner, name, property(get, doc=own[name].meaning))
    owner._attributes = tuple(kept.values())
    described = [own[name].described(name) for name in order]
    owner.__doc__ = _documented(
        owner.__doc__ or "", [*described, *closing.splitlines()]
    )
    if "__init__" not in vars(owner):
        # A function of exactly these parameters, as `dataclasses` makes it.
        code = _code(tuple(order), tuple(kept.items()), last)
        defaults = [value for n in order for value in own[n].default.values()]
        init = FunctionType(code, {"adopt": owner._adopt}, "__init__")
        init.__defaults__ = (*defaults, default)
        init.__qualname__ = f"{owner.__qualname__}.__init__"
        owner.__init__ = init
    return own


@cache
def _code(names: tuple[str, ...], kept: tuple[tuple[str, str], ...], last: str):
    """The code of a constructor of these parameters; many classes share theirs."""
    passed = [f"{n}={n}" for n in names if n not in dict(kept)]
    lines = [f"self.{attribute} = {n}" for n, attribute in kept]
    lines.append(f"adopt({', '.join(('self', last, *passed))})")
    given = ", ".join(("self", *names, last))
    exec(f"def __init__({given}): {'; '.join(lines)}", space := {})
    return space["__init__"].__code__


def _documented(text: str, described: list[str]) -> str:
    """A class's text with its parameters before the first of its other sections."""
    ends = [text.find(f"\n\n    {title}:") for title in ("Raises", "Example")]
    end = min((e for e in ends if e >= 0), default=len(text.rstrip()))
    lines = "".join(f"\n        {line}" for line in described)
    return f"{text[:end]}\n\n    Args:{lines}{text[end:] or chr(10)}"


def _constraints(own: dict, symbols: dict[str, str]):
    """Constraints by name, or a property where they depend on members."""
    table = {n: p.constraint for n, p in own.items() if p.constraint}
    moving = {n: _of_members(table[n], symbols) for n, p in own.items() if p.moving}
    found = property(lambda self: table | {n: c(self) for n, c in moving.items()})
    return found if moving else table


def in_double(function):
    """Evaluates a formula of narrower numbers in float64, where its terms cancel."""

    def evaluate(*given):
        tensors = [a for a in given if isinstance(a, taeda.Tensor)]
        types = {a.dtype for a in tensors if a.is_floating_point()}
        if not types or taeda.float64 in types:
            return function(*given)
        wide = (a.double() if getattr(a, "dtype", None) in types else a for a in given)
        return function(*wide).to(reduce(taeda.promote_types, types))

    evaluate.__wrapped__ = function
    return evaluate


def _of_value(function, members, name: str, given: list):
    def member(self, value):
        if name == "log_prob" and self._like is not None:
            value = taeda.as_tensor(value).to(getattr(self, self._like))
        if name != "icdf" and self._validate_args:
            self._validate_sample(value)
        if given[0] == "z":
            value = (value - self.loc) / self.scale
        return function(value, *members(self))

    return member


def _of_shape(function, members, name: str, given: list):
    def member(self, sample_shape=()):
        known = {"shape": self._extended_shape(sample_shape), "size": sample_shape}
        # A `sample` of its own is one that has no gradient.
        wanted = name == "rsample" and taeda.is_grad_enabled()
        with taeda.set_grad_enabled(wanted):
            return function(*[known[n] for n in given], *members(self))

    return member


def _enumerated(function, members, name: str, given: list):
    def member(self, expand: bool = True):
        batch, event = self.batch_shape, self.event_shape
        values = function(*members(self)).reshape(-1, *(1 for _ in batch), *event)
        return values.expand(-1, *batch, *event) if expand else values

    return member


def _of_given(function, members, name: str, given: list):
    return lambda self, *values: function(*values, *members(self))


def _plain(function, members, name: str, given: list):
    return lambda self: function(*members(self))


# How a formula is called, by what it is given, or by its name.
_KINDS = {"x": _of_value, "z": _of_value, "shape": _of_shape, "size": _of_shape}
_KINDS |= dict.fromkeys(("offset", "check"), _of_given)
_METHODS = dict.fromkeys(("entropy", "_root", "_half_log_det"), _plain)
_METHODS["enumerate_support"] = _enumerated


class formula:
    """A member given by a function of others; see the module."""

    def __init__(self, function, lazy: bool = False) -> None:
        self.function, self.lazy = function, lazy

    def __set_name__(self, owner, name: str) -> None:
        function = self.function
        names = _arguments(getattr(function, "__wrapped__", function))
        # What it is given comes before the members; with `check` all parameters are.
        given = [n for n in names if n in _KINDS or "check" in names]
        members = _reader(names[len(given) :], owner._symbols)
        kind = _KINDS[given[-1]] if given else _METHODS.get(name)
        member = (kind or _plain)(function, members, name, given)
        member.__name__, member.__qualname__ = name, f"{owner.__qualname__}.{name}"
        member.__doc__ = getattr(getattr(Distribution, name, None), "__doc__", None)
        if kind is None:
            member = (lazy_property if self.lazy else property)(member)
        setattr(owner, name, member)
        if name in ("rsample", "enumerate_support"):
            setattr(owner, f"has_{name}", True)


# A formula whose result is kept, as `lazy_property` does; and one that is evaluated in
# float64, because its terms cancel.
lazy = partial(formula, lazy=True)
wide = lambda function: formula(in_double(function))


class region:
    """A support that depends on members, by a function of them."""

    def __init__(self, function, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.function = function
        self.facts = {"is_discrete": is_discrete, "event_dim": event_dim}

    def __set_name__(self, owner, name: str) -> None:
        get = _of_members(self.function, owner._symbols)
        setattr(owner, name, constraints.dependent_property(get, **self.facts))


class Expanding(Distribution):
    """A distribution whose class and expansion follow from its declaration.

    `_nested` names attributes that are distributions with (at least) its batch dims,
    `_kept` those that stay as they are. `_like` names the parameter whose kind of
    tensor `log_prob` makes of plain numbers, where it takes them; `_called` is how
    errors call a parameter.
    """

    _ranks: dict[str, int] = {}
    _symbols: dict[str, str] = {}
    _nested: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()
    _like: str | None = None
    _called = "{}"

    def __init_subclass__(cls, support=None, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if support is not None:
            cls.support = support
        if own := construct(cls, "validate_args"):
            cls._declare(own)

    @classmethod
    def _declare(cls, own: dict) -> None:
        """What else follows from a class's own parameters and formulas."""
        cls._declaring, cls.arg_constraints = cls, _constraints(own, cls._symbols)
        ranks = {n: p.rank for n, p in own.items() if p.constraint and not p.source}
        cls._ranks, cls._flat = cls._ranks | ranks, not any(ranks.values())
        cls._kept += cls._attributes
        for name, each in own.items():
            if isinstance(each.source, str):
                setattr(cls, name, of(each.source, name))
            elif each.source:
                setattr(cls, name, property(_of_members(each.source, cls._symbols)))
        for name, value in [*vars(cls).items()]:
            if isinstance(value, FunctionType) and _arguments(value)[:1] != ("self",):
                formula(value).__set_name__(cls, name)

    def _adopt(self, validate_args, **given) -> None:
        """Broadcast the parameters' batch dims, keep them, and check them.

        Events have the event dims of the first parameter that has any.
        """
        if self._flat:
            values = broadcast_all(*given.values())
            given = zip(given, values, strict=True)
            batch, event = values[0].shape, ()
        else:
            shapes = [self._cut(name, value) for name, value in given.items()]
            found = {own for own, _ in shapes}
            batch = shapes[0][0] if len(found) == 1 else taeda.broadcast_shapes(*found)
            event = next(event for _, event in shapes if event)
            for (name, value), (own, last) in zip(given.items(), shapes, strict=True):
                given[name] = value if own == batch else value.expand(batch + last)
        vars(self).update(given)
        Distribution.__init__(self, batch, event, validate_args=validate_args)

    def _cut(self, name: str, value):
        """The batch's part of a parameter's shape, and the event's."""
        at = value.dim() - self._ranks[name]
        if at < 0:
            called = self._called.format(name)
            raise ValueError(f"{called} must be at least one-dimensional.")
        return value.shape[:at], value.shape[at:]

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


class ProbsOrLogits(Expanding):
    """Base of those given by probabilities or by their logits.

    `_binary` says whether each number is a probability by itself, or the numbers along
    the last dim are weights of the values of one variable.
    """

    _binary = True
    _kept = ("_given",)
    _called = "`{}` parameter"
    probs = lazy(lambda logits, _binary: logits_to_probs(logits, _binary))
    logits = lazy(lambda probs, _binary: probs_to_logits(probs, _binary))
    _param = property(lambda self: vars(self)[self._given])
    param_shape = formula(lambda _param: _param.size())
    _new = formula(lambda _param: _param.new)

    def _adopt(self, validate_args, probs, logits, **others) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(
                "Either `probs` or `logits` must be specified, but not both."
            )
        self._given = "logits" if probs is None else "probs"
        value = logits if probs is None else probs
        if self._binary:
            *rest, value = broadcast_all(*others.values(), value)
            for name, other in zip(others, rest, strict=True):
                setattr(self, name, other.type_as(value))
            batch = value.shape
        else:
            batch, _ = self._cut(self._given, value)
            if probs is None:
                value = value - value.logsumexp(-1, keepdim=True)
            else:
                value = value / value.sum(-1, keepdim=True)
        setattr(self, self._given, value)
        Distribution.__init__(self, batch, validate_args=validate_args)
