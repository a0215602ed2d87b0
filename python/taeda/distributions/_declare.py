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

import math
import re
from functools import partial
from operator import attrgetter
from types import new_class

import taeda
from taeda.nn import functional as F

from . import constraints, utils
from ._formulas import formula
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
        default: the text of its value when absent, if it may be.
    """

    def __init__(
        self, symbol, constraint, meaning, source=None, held=None, default=None
    ) -> None:
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
    first = parameter("p", probs, meaning, p, default="None")
    return first, parameter("t", *logits, t, default="None")


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
    for name in own:
        delattr(owner, name)
        if kept.get(name, name) == f"_{name}":
            get = attrgetter(kept[name])
            setattr(owner, name, property(get, doc=own[name].meaning))
    owner._attributes = tuple(kept.values())
    described = "\n        ".join([*(own[n].described(n) for n in order), closing])
    summary, *sections = (owner.__doc__ or "").rstrip().split("\n\n    Raises:")
    parts = [f"{summary}\n\n    Args:\n        {described.rstrip()}", *sections]
    owner.__doc__ = "\n\n    Raises:".join(parts) + "\n"
    if "__init__" not in vars(owner):
        given = [
            n if own[n].default is None else f"{n}={own[n].default}" for n in order
        ]
        passed = [f"{n}={n}" for n in order if n not in kept]
        call = f"owner._adopt({', '.join(['self', last.partition('=')[0], *passed])})"
        lines = [f"self.{attribute} = {n}" for n, attribute in kept.items()]
        init = formula(call, [*given, last], lines, space={"owner": owner})
        init.__set_name__(owner, "__init__")
        owner.__init__ = init
    return own


def _constraints(own: dict):
    """Constraints by name, or a property where they depend on members."""
    table = {n: p.constraint for n, p in own.items() if p.constraint}
    moving = [n for n, p in own.items() if p.moving]
    found = lambda self: table | {n: getattr(self, f"_{n}_region") for n in moving}
    return property(found) if moving else table


_HEAD = re.compile(r"(\w+)(?:\((.+?)\))?(?: over (.+?))?: (.+)", re.S)
_PARAMETER = re.compile(
    r"(\w+) (as )?(\w+)(?: in (.+?))?(?: of (.+?))?(?: default (.+?))?: (.+)"
)
_MEMBERS = re.compile(r"(wide |lazy |)(\w.*?) (is|in|of|=) (.+)", re.S)


def _evaluated(text: str, space: dict):
    """The value of an expression, or a formula if it names members."""
    try:
        return eval(text, space)
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


def _row(row: str, space: dict) -> dict:
    """The members that a row with its deeper lines declares."""
    if row[0] == "#":
        return {}
    first, *lines = row.split("\n        ")
    if found := _PARAMETER.fullmatch(" ".join([first, *lines])):
        name, held, symbol, region, source, default, meaning = found.groups()
        made = parameter(
            None if held else symbol,
            region and _evaluated(region, space),
            meaning,
            source and formula(source, space=space),
            held and symbol,
            default,
        )
        return {name: made} | (
            {f"_{name}_region": made.constraint} if made.moving else {}
        )
    kind, left, how, text = _MEMBERS.fullmatch(row).groups()
    if how == "is":
        names, value = left.split(", "), eval(text, space)
        return dict(zip(names, value if names[1:] else [value], strict=True))
    if how == "of":
        return {n: formula(f"{text}.{n}", space=space) for n in left.split(", ")}
    if how == "in":
        return {
            k: v for n in left.split(", ") for k, v in _region(n, text, space).items()
        }
    *names, text = first[len(kind) :].split(" = ")
    made = {}
    for each in names:
        name, called, given = each.partition("(")
        given = [n for n in given[:-1].split(", ") if n] if called else None
        made[name] = formula(text, given, lines, kind.strip(), space)
    return made


def declare(module: dict, text: str, base: type | None = None) -> None:
    """Enter the classes of a text's paragraphs among the names of a module.

    Their bases are those of the paragraph, and `base`, which is
    `Expanding` when absent, if none of them has it as one.
    """
    space, base = KNOWN | module, base or Expanding
    for paragraph in text.strip().split("\n\n"):
        head, *rows = re.split(r"\n    (?=\S)", paragraph)
        name, bases, region, about = _HEAD.fullmatch(head).groups()
        # The first sentence stands by itself.
        about = about[0].upper() + about[1:].replace(".\n", ".\n\n", 1)
        about = [re.sub(r"\n(?=.)", "\n    ", about)]
        # Its own formulas may name the class.
        space[name] = None
        body = _region("support", region, space) if region else {}
        for row in rows:
            if row.startswith(("Raises:", "Example:")):
                about.append(row)
            else:
                body |= _row(row, space)
        bases = eval(f"({bases}, )" if bases else "()", space)
        if not any(issubclass(each, base) for each in bases):
            bases = base, *bases
        body |= {"__module__": space["__name__"], "__doc__": "\n\n    ".join(about)}
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
        if own := construct(cls, "validate_args=None"):
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
