"""How classes follow from paragraphs of text, compiled when they are first used.

A paragraph is a class: `Name(Bases) over region: meaning`, the region being the support
and the bases `Expanding` if none are named, and then a row for each member:

    loc m in real: the mean             a parameter of the constructor, its symbol, its
                                        constraint and meaning; `of` says who else has
                                        it, `default` its value when absent
    variance = 2 * s**2                 a property, or several: `mean = mode = m`
    lazy _chi2 = Chi2(n)                one that is kept once it was read
    log_prob = -z.abs() - (2 * s).log() a method of a value x, or z = (x - loc) / scale
    rsample = m + s * normal(shape, m)  one of the `shape` of samples, or of its `size`
                                        without the dims of the batch and the event
    _distance(offset) = offset / s      a method of what stands in the parentheses
    _like is "rate"                     what the class has, evaluated at once
    raises ValueError: when             a line of the documentation

Formulas are expressions of symbols, other members and the module's names; deeper lines
below one are evaluated before it. `wide` formulas are evaluated in float64. Constructor,
documentation, checks, broadcasting, expansion and shapes follow; a parameter has as many
event dims as its constraint.
"""

from __future__ import annotations

import builtins
import math
import re
from functools import cache, partial
from operator import attrgetter
from types import FunctionType, new_class

import taeda
from taeda.nn import functional as F

from . import constraints, utils
from ._formulas import formula, names_of
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all, logits_to_probs, probs_to_logits


def of(attribute: str, *names: str):
    """A property that is another object's, or several."""
    doc = f"That of `{attribute}`."
    found = [property(attrgetter(f"{attribute}.{n}"), doc=doc) for n in names]
    return found if len(found) > 1 else found[0]


class parameter:
    """A parameter of a constructor.

    Args:
        symbol: its name in formulas.
        constraint: a region, or a formula that gives one; None for what an attribute
            keeps as it was given.
        meaning: what the documentation says of it.
        source: the property that gives it, if the object itself does not keep it.
        held: the attribute that keeps it as it was given, if not one of its name.
        default: its value when absent.
    """

    def __init__(self, symbol, constraint, meaning, source=None, held=None, **default):
        self.symbol, self.constraint, self.meaning = symbol, constraint, meaning
        self.source, self.held, self.default = source, held, default
        self.rank = getattr(constraint, "event_dim", 0)
        self.moving = isinstance(constraint, formula)

    def __set_name__(self, owner, name: str) -> None:
        self.held = self.held or name
        if isinstance(self.source, formula):
            self.source.__set_name__(owner, name)
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
    p, t = of(source, "probs", "logits") if source else (None, None)
    first = parameter("p", probs, meaning, p, default=None)
    return first, parameter("t", *logits, t, default=None)


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


def _constraints(own: dict):
    """Constraints by name, or a property where they depend on members."""
    table = {n: p.constraint for n, p in own.items() if p.constraint}
    moving = [n for n, p in own.items() if p.moving]
    found = lambda self: table | {n: getattr(self, f"_{n}_region") for n in moving}
    return property(found) if moving else table


_HEAD = re.compile(r"(\w+)(?:\((.+?)\))?(?: over (.+?))?: (.+)", re.S)
_PARAMETER = re.compile(
    r"(\w+) (\w+)(?: in (.+?))?(?: of (.+?))?(?: default (.+?))?: (.+)"
)
_ATTRIBUTES = re.compile(r"(\w+(?:, \w+)*) is (.+)", re.S)
_FORMULA = re.compile(r"(?:(wide|lazy) )?(\w+.*) = (.+)")


def _evaluated(text: str, space: dict):
    """The value of an expression, or a formula if it names members."""
    if text in space:
        return space[text]
    known = names_of([text]) <= space.keys() | vars(builtins).keys()
    return eval(text, space) if known else formula(text, space=space)


def _support(text: str, space: dict) -> dict:
    """The members that say where samples lie."""
    found = _evaluated(text, space)
    if not isinstance(found, formula):
        return {"support": found}
    kind = space[text.partition("(")[0]]
    facts = {name: getattr(kind, name) for name in ("is_discrete", "event_dim")}
    support = constraints.dependent_property(attrgetter("_support"), **facts)
    return {"_support": found, "support": support}


def _row(row: str, space: dict) -> dict:
    """The members that a row with its deeper lines declares."""
    first, *lines = row.split("\n        ")
    if row[0] == "#":
        return {}
    if found := _PARAMETER.fullmatch(" ".join([first, *lines])):
        name, symbol, region, source, default, meaning = found.groups()
        source = source and formula(source, space=space)
        region = region and _evaluated(region, space)
        given = {"default": eval(default, space)} if default else {}
        made = {name: parameter(symbol, region, meaning, source, **given)}
        return made | {f"_{name}_region": region} if made[name].moving else made
    if found := _ATTRIBUTES.fullmatch(row):
        names, value = found[1].split(", "), eval(found[2], space)
        return dict(zip(names, value if names[1:] else [value], strict=True))
    kind, left, text = _FORMULA.fullmatch(first).groups()
    made = {}
    for each in left.split(" = "):
        name, called, given = each.partition("(")
        given = re.findall(r"[^,() ]+", given) if called else None
        made[name] = formula(text, given, lines, kind, space)
    return made


def declare(module: dict, text: str) -> None:
    """Enter the classes of a text's paragraphs among the names of a module."""
    space = KNOWN | module
    for paragraph in text.strip().split("\n\n"):
        head, *rows = re.split(r"\n    (?=\S)", paragraph)
        name, bases, region, about = _HEAD.fullmatch(head).groups()
        # The first sentence stands by itself.
        about = about[0].upper() + about[1:].replace(".\n", ".\n\n", 1)
        text = [re.sub(r"\n(?=.)", "\n    ", about)]
        # Its own formulas may name the class.
        space[name] = None
        body = _support(region, space) if region else {}
        for row in rows:
            if row.startswith(("Raises:", "Example:")):
                text.append(row)
            else:
                body |= _row(row, space)
        bases = eval(f"({bases}, )" if bases else "()", space)
        if not any(issubclass(base, Expanding) for base in bases):
            bases = Expanding, *bases
        body |= {"__module__": space["__name__"], "__doc__": "\n\n    ".join(text)}
        kind = new_class(name, bases, {}, partial(dict.update, **body))
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
        if own := construct(cls, "validate_args"):
            cls._declare(own)

    @classmethod
    def _declare(cls, own: dict) -> None:
        """What else follows from a class's own parameters and formulas."""
        cls._declaring, cls.arg_constraints = cls, _constraints(own)
        ranks = {n: p.rank for n, p in own.items() if p.constraint and not p.source}
        cls._ranks, cls._flat = cls._ranks | ranks, not any(ranks.values())
        cls._kept += cls._attributes
        for name, each in own.items():
            if each.source:
                setattr(cls, name, each.source)

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
    probs = formula("logits_to_probs(logits, _binary)", kind="lazy")
    logits = formula("probs_to_logits(probs, _binary)", kind="lazy")
    _param = property(lambda self: vars(self)[self._given])
    param_shape, _new = formula("_param.size()"), formula("_param.new")

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


# What every text may name, with the classes declared so far. It is written only while
# the package is imported, by one thread.
KNOWN = {name: getattr(constraints, name) for name in constraints.__all__}
KNOWN |= vars(utils) | globals() | {"F": F, "math": math}
