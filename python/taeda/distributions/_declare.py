"""How classes follow from paragraphs of text.

A paragraph is a class, `Name(Bases) over support: meaning`. Its rows are its members:

    loc m in real: the mean             a parameter, its symbol, constraint and meaning;
                                        `of` says who else has it, `default` its value
                                        when absent
    base_distribution as base_dist: x   a parameter that is kept under another name
    variance = 2 * s**2                 a property, or several: `mean = mode = m`
    lazy _chi2 = Chi2(n)                one that is kept once it was read
    entropy = (2 * s).log() + 1         a method
    log_prob = -z.abs() - (2 * s).log() a method of a value x, or of z = (x - m) / s
    rsample = m + s * normal(shape)     one of the `shape` of samples, or of its `size`
                                        without the dims of the batch and the event
    _distance(offset) = offset / s      a method of what stands in the parentheses
    has_rsample of base_dist            a property that another object has
    domain in interval(0, n)            a region, which may depend on members
    _like is "rate"                     what the class has, evaluated at once

Formulas are expressions of symbols, members and the module's names; deeper lines below
one are executed before it. Those that are `wide` are evaluated in float64. Constructor,
documentation, checks, broadcasting, expansion and shapes follow; a parameter has as
many event dims as its constraint.
"""

from __future__ import annotations

import builtins
import math
import re
from functools import reduce
from operator import attrgetter

import taeda
from taeda.nn import functional as F

from . import constraints, distribution, utils
from ._formulas import formula
from .distribution import Distribution
from .utils import broadcast_all


def of(attribute: str, *names: str):
    """Properties that are another object's."""
    doc = f"That of `{attribute}`."
    return [property(attrgetter(f"{attribute}.{n}"), doc=doc) for n in names]


class parameter:
    """A parameter of a constructor.

    Args:
        constraint: a region, or a formula that gives one; None for what an attribute
            keeps as it was given.
        meaning: what the documentation says of it.
        symbol: its name in formulas.
        source: the property that gives it, if the object itself does not keep it.
        default: the text of its value when absent, if it may be.
        held: the attribute that keeps it, if not one of its name.
    """

    def __init__(self, constraint, meaning, symbol, source, default, held=None) -> None:
        self.constraint, self.meaning, self.symbol = constraint, meaning, symbol
        self.source, self.default, self.held = source, default, held
        self.rank = getattr(constraint, "event_dim", 0)
        self.moving = isinstance(constraint, formula)

    def __set_name__(self, owner, name: str) -> None:
        self.held = self.held or name
        if isinstance(self.source, formula):
            self.source.__set_name__(owner, name)

    def described(self, name: str) -> str:
        """Its line of the documentation."""
        if self.constraint is None:
            return f"{name}: {self.meaning}."
        shape = ("batch_shape", "(*batch_shape, n)", "(*batch_shape, n, m)")[self.rank]
        region = "" if self.moving else f" {self.constraint!r}."
        return f"{name}: {self.meaning}. Shape: {shape}.{region}"


_LOGIT = constraints.real, "its logit, in place of it"


def odds(meaning: str, probs=constraints.unit_interval, source=None, logits=_LOGIT):
    """Parameters: the probability of an event, or its logit."""
    p, t = of(source, "probs", "logits") if source else (None, None)
    first = parameter(probs, meaning, "p", p, "None")
    return first, parameter(*logits, "t", t, "None")


def weights(places: str, source=None):
    """Parameters: weights along the last dim, or their logarithms."""
    meaning = f"weights of the {places} along the last dim; they are normalised"
    other = constraints.real_vector, "logarithms of weights, in place of them"
    return odds(meaning, constraints.simplex, source, other)


def construct(owner, last: str, closing: str = "") -> dict:
    """Make a class's constructor and documentation of its parameters, and return those.

    The constructor has one more parameter, the last. It calls the class's `_adopt` with
    that and with those that no attribute keeps.
    """
    own = {n: v for n, v in vars(owner).items() if isinstance(v, parameter)}
    if not own:
        return own
    # Those with a default value come last.
    order = sorted(own, key=lambda name: own[name].default is not None)
    kept = {n: p.held for n, p in own.items() if not (p.constraint or p.source)}
    symbols = {p.symbol: n for n, p in own.items() if p.symbol}
    owner._symbols = super(owner, owner)._symbols | owner._symbols | symbols
    for name, each in own.items():
        delattr(owner, name)
        if each.held == f"_{name}":
            setattr(owner, name, property(attrgetter(each.held), doc=each.meaning))
        if each.source:
            setattr(owner, name, each.source)
    owner._attributes = tuple(kept.values())
    lines = [*(own[n].described(n) for n in order), *closing.splitlines()]
    described = "\n        ".join(["\n\n    Args:", *lines])
    parts = re.split(
        r"(?=\n\n    (?:Raises|Example):)", owner.__doc__ or "", maxsplit=1
    )
    owner.__doc__ = "".join([parts[0].rstrip(), described, *parts[1:], "\n"])
    if "__init__" not in vars(owner):
        given = [f"{n}={own[n].default}" if own[n].default else n for n in order]
        passed = [f"{n}={n}" for n in order if n not in kept]
        call = f"owner._adopt({', '.join(['self', last.partition('=')[0], *passed])})"
        lines = [f"self.{attribute} = {n}" for n, attribute in kept.items()]
        init = formula(call, [*given, last], lines, space={"owner": owner})
        init.__set_name__(owner, "__init__")
        owner.__init__ = init
    return own


_PARAMETER = re.compile(
    r"(\w+) (as )?(\w+)(?: in (.+?))?(?: of (.+?))?(?: default (.+?))?: (.+)"
)


def _value(text: str, space: dict):
    # Many expressions are names, which need no compiler.
    return space[text] if text in space else eval(text, space)


def _evaluated(text: str, space: dict):
    """The value of an expression, or a formula if it names members."""
    try:
        return _value(text, space)
    except NameError:
        return formula(text, space=space)


def _region(name: str, text: str, space: dict) -> dict:
    """The members that say where samples, or sides of a map, lie."""
    found = _evaluated(text, space)
    if not isinstance(found, formula):
        return {name: found}
    kind, facts = space.get(text.partition("(")[0]), {"is_discrete": False}
    if isinstance(kind, type):
        facts = {n: getattr(kind, n) for n in ("is_discrete", "event_dim")}
        facts = {n: fact for n, fact in facts.items() if not isinstance(fact, property)}
    get = attrgetter(f"_{name}")
    return {f"_{name}": found, name: constraints.dependent_property(get, **facts)}


def _formulas(first: str, lines: list[str], space: dict) -> dict:
    *names, text = first.split(" = ")
    kind, made = "", {}
    if names[0].startswith(("wide ", "lazy ")):
        kind, _, names[0] = names[0].partition(" ")
    for each in names:
        name, called, given = each.partition("(")
        given = [n for n in given[:-1].split(", ") if n] if called else None
        made[name] = formula(text, given, lines, kind, space=space)
    return made


def _row(first: str, lines: list[str], space: dict) -> dict:
    """The members that a row with its deeper lines declares."""
    if " = " in first:
        return _formulas(first, lines, space)
    row = " ".join([first, *lines])
    if ": " in row and (found := _PARAMETER.fullmatch(row)):
        name, held, symbol, region, source, default, meaning = found.groups()
        region = region and _evaluated(region, space)
        source = source and formula(source, space=space)
        if held:
            return {name: parameter(region, meaning, None, source, default, symbol)}
        made = {name: parameter(region, meaning, symbol, source, default)}
        return made | {f"_{name}_region": region} if made[name].moving else made
    how = next((word for word in (" is ", " in ", " of ") if word in row), None)
    if how is None:
        raise ValueError(f"declare: {row!r} is no row of a class")
    left, _, text = row.partition(how)
    names = left.split(", ")
    if how == " is ":
        value = _value(text, space)
        return dict(zip(names, value if names[1:] else [value], strict=True))
    if how == " of ":
        return {n: formula(f"{text}.{n}", space=space) for n in names}
    return {n: v for each in names for n, v in _region(each, text, space).items()}


def declare(module: dict, text: str, base: type | None = None) -> None:
    """Enter the classes of a text's paragraphs among the names of a module.

    `base`, `Expanding` when absent, is a base of those that name no subclass of it.
    """
    space, base = KNOWN | module, base or Expanding
    for paragraph in text.strip().split("\n\n"):
        head, *rows = paragraph.replace("\n        ", "\0").split("\n    ")
        head, _, about = head.partition(": ")
        head, _, region = head.partition(" over ")
        name, _, bases = head.removesuffix(")").partition("(")
        # The first sentence stands by itself.
        about = about[0].upper() + about[1:].replace(".\n", ".\n\n", 1)
        about = [about.replace("\n", "\n    ").replace("    \n", "\n")]
        # Its own formulas may name the class.
        space[name] = None
        body = _region("support", region, space) if region else {}
        for first, *lines in (row.split("\0") for row in rows):
            if first in ("Raises:", "Example:"):
                about.append("\n        ".join([first, *lines]))
            elif first[0] != "#":
                body |= _row(first, lines, space)
        bases = tuple(space[each] for each in bases.split(", ") if each)
        if not any(issubclass(each, base) for each in bases):
            bases = base, *bases
        body |= {"__module__": space["__name__"], "__doc__": "\n\n    ".join(about)}
        kind = type(name, bases, body)
        module[name] = space[name] = KNOWN[name] = kind


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

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if own := construct(cls, "validate_args=None"):
            limited = {n: p for n, p in own.items() if p.constraint}
            moving = [n for n, p in limited.items() if p.moving]
            table = {n: p.constraint for n, p in limited.items()}
            regions = lambda self: (
                table | {n: getattr(self, f"_{n}_region") for n in moving}
            )
            cls._declaring = cls
            cls.arg_constraints = property(regions) if moving else table
            ranks = {n: p.rank for n, p in limited.items() if not p.source}
            cls._ranks, cls._flat = cls._ranks | ranks, not any(ranks.values())
            cls._kept += cls._attributes

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
        new._asked_to_validate = self._asked_to_validate
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


def _adopt_odds(self, validate_args, probs, logits, **others) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
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


# What every text may name, with the classes declared so far. It is written only while
# the package is imported, by one thread.
KNOWN = (
    vars(builtins) | vars(constraints) | vars(utils) | vars(distribution) | globals()
)
KNOWN |= {"F": F, "math": math, "reduce": reduce}
TEXT = """
ProbsOrLogits: base of those given by probabilities or by their logits.
`_binary` says whether each number is a probability by itself, or the numbers along the
last dim are weights of the values of one variable.
    _binary is True
    _kept is ("_given",)
    _called is "`{}` parameter"
    _adopt is _adopt_odds
    lazy probs = logits_to_probs(logits, _binary)
    lazy logits = probs_to_logits(probs, _binary)
    _param = vars(self)[self._given]
    param_shape = _param.size()
    _new = _param.new
"""
declare(globals(), TEXT)
