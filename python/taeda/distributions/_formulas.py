"""Formulas: rows of text that become members of classes, compiled at first use."""

from __future__ import annotations

import re
from functools import reduce

import taeda

from .utils import lazy_property


def in_double(function):
    """Evaluates a formula of narrower numbers in float64, where its terms cancel."""

    def evaluate(*given):
        tensors = [a for a in given if isinstance(a, taeda.Tensor)]
        types = {a.dtype for a in tensors if a.is_floating_point()}
        if not types or taeda.float64 in types:
            return function(*given)
        wide = (a.double() if getattr(a, "dtype", None) in types else a for a in given)
        return function(*wide).to(reduce(taeda.promote_types, types))

    return evaluate


def _free(table) -> set[str]:
    """The names that a scope and those inside it do not define."""
    own = {each.get_name() for each in table.get_symbols() if each.is_global()}
    return own.union(*map(_free, table.get_children()))


def names_of(lines) -> set[str]:
    """The names that the body of a function does not define."""
    from symtable import symtable

    body = "\n    ".join(["def body():", *lines])
    return _free(symtable(body, "body", "exec").get_children()[0])


def function_of(name: str, given, lines, members: dict, space: dict):
    """The function of arguments with this body and expressions for other names."""
    import linecache

    bound = [f"{n} = {expression}" for n, expression in members.items()]
    called = name.rpartition(".")[2]
    source = "\n    ".join([f"def {called}({', '.join(given)}):", *bound, *lines])
    # Tracebacks show the lines.
    file = f"<{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), space, made := {})
    return made[called]


def wide_function_of(name: str, given, lines, members: dict, space: dict):
    """The same, evaluated in float64."""
    own = [n for n in given if n in names_of(lines)]
    inner = function_of(f"wide {name}", [*own, *members], lines, {}, space)
    call = f"return inner({', '.join([*own, *members.values()])})"
    return function_of(name, given, [call], {}, {"inner": in_double(inner)})


def _of_value(function, name: str):
    def member(self, value):
        like = self._like if name == "log_prob" else None
        if like is not None and getattr(self, "_takes_numbers", False):
            value = taeda.as_tensor(value)
        if name != "icdf" and self._validates():
            self._validate_sample(value)
        if like is not None:
            value = taeda.as_tensor(value).to(getattr(self, like))
        return function(self, value)

    return member


def _of_shape(function, name: str):
    def member(self, sample_shape=()):
        # A `sample` of its own is one that has no gradient.
        wanted = name == "rsample" and taeda.is_grad_enabled()
        with taeda.set_grad_enabled(wanted):
            return function(self, self._extended_shape(sample_shape), sample_shape)

    return member


def _enumerated(function, name: str):
    def member(self, expand: bool = True):
        batch, event = self.batch_shape, self.event_shape
        values = function(self).reshape(-1, *(1 for _ in batch), *event)
        return values.expand(-1, *batch, *event) if expand else values

    return member


# How a function of an object becomes a member, and what else it takes, by a name in the
# formula; or how, by the name of the member.
_KINDS = {"x": (_of_value, ["x"])}
_KINDS |= dict.fromkeys(("shape", "size"), (_of_shape, ["shape", "size"]))
_METHODS = {
    "entropy": lambda function, name: function,
    "enumerate_support": _enumerated,
}


class formula:
    """A member that is a row of text, compiled when it is first read.

    Args:
        text: an expression.
        given: what the member is called with, where the expression does not say it.
        lines: what is executed before.
        kind: wide if it is evaluated in float64, lazy if it is kept.
        space: the names that are not the object's.
    """

    def __init__(self, text: str, given=None, lines=(), kind="", *, space) -> None:
        self.lines, self.given = [*lines, f"return {text}"], given
        self.kind, self.space = kind, space

    def __set_name__(self, owner, name: str) -> None:
        self.owner, self.name = owner, name
        has = f"has_{name}"
        if has in ("has_rsample", "has_enumerate_support") and has not in vars(owner):
            setattr(owner, has, True)

    def __get__(self, instance, kind=None):
        # Threads that come here at once make the same. A class below may have a member
        # of this name too, which is not what `super()` asks for.
        return _entered(self.owner, self.name).__get__(instance, kind)

    def _made(self):
        """A method if it takes anything or is one by its name, else a property."""
        owner, name, lines, given = self.owner, self.name, self.lines, self.given
        symbols, wrap, names = owner._symbols, None, names_of(lines)
        if given is None:
            if "z" in names:
                lines = ["z = (x - m) / s", *lines]
                names = names_of(lines)
            wrap, given = _METHODS.get(name), []
            for found in names & _KINDS.keys():
                wrap, given = _KINDS[found]
        names -= {"self", *(re.match(r"\W*(\w+)", each)[1] for each in given)}
        names -= self.space.keys() - symbols.keys()
        members = {n: f"self.{symbols.get(n, n)}" for n in sorted(names)}
        make = wide_function_of if self.kind == "wide" else function_of
        called = f"{owner.__qualname__}.{name}"
        member = make(called, ["self", *given], lines, members, self.space)
        if wrap:
            member = wrap(member, name)
        member.__name__, member.__qualname__ = name, called
        above = getattr(super(owner, owner), name, None)
        member.__doc__ = getattr(above, "__doc__", None)
        if wrap or self.given is not None:
            return member
        return (lazy_property if self.kind == "lazy" else property)(member)


def _entered(owner: type, name: str):
    """Compiles the formula of a class, in whose place the member is from then on."""
    found = vars(owner)[name]
    if isinstance(found, formula):
        found = found._made()
        setattr(owner, name, found)
    return found


# Graphs are not to hold how a class came about.
_entered._dynamo_marked_constant = True
