"""Formulas: rows of text that become members of classes, compiled at first use."""

from __future__ import annotations

import builtins
import re
import sys
from functools import partial, reduce

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
    inner = function_of(name, [*own, *members], lines, {}, space)
    call = f"return inner({', '.join([*own, *members.values()])})"
    return function_of(name, given, [call], {}, {"inner": in_double(inner)})


def _of_value(function, name: str):
    def member(self, value):
        if name == "log_prob" and self._like is not None:
            value = taeda.as_tensor(value).to(getattr(self, self._like))
        if name != "icdf" and self._validate_args:
            self._validate_sample(value)
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


# How a formula becomes a member, by what it is given, or by its name.
_KINDS = {"x": _of_value, "shape": _of_shape, "size": _of_shape}
_GIVEN = {_of_value: ["x"], _of_shape: ["shape", "size"]}
_METHODS = {
    "entropy": lambda function, name: function,
    "enumerate_support": _enumerated,
}


class formula:
    """A member that is a row of text, compiled when it is first read."""

    def __init__(self, text, given=None, lines=(), kind="", space=None) -> None:
        self.lines, self.given = [*lines, f"return {text}"], given
        self.kind, self.space = kind, space

    def __set_name__(self, owner, name: str) -> None:
        self.owner, self.name = owner, name
        if self.space is None:
            self.space = vars(sys.modules[owner.__module__])
        if name in ("rsample", "enumerate_support") and f"has_{name}" not in vars(
            owner
        ):
            setattr(owner, f"has_{name}", True)

    def __get__(self, instance, kind=None):
        # Threads that come here at once make the same.
        setattr(self.owner, self.name, self._made())
        return getattr(kind if instance is None else instance, self.name)

    def _made(self):
        name, lines, symbols = self.name, self.lines, self.owner._symbols
        names = names_of(lines)
        if "z" in names and self.given is None:
            lines = ["z = (x - loc) / scale", *lines]
            names = names_of(lines)
        wrap, given = None, self.given or []
        if self.given is None:
            wrap = _METHODS.get(name)
        if self.given is None and (found := names & _KINDS.keys()):
            wrap = _KINDS[min(found)]
            given = _GIVEN[wrap]
        others = names - {"self", *(re.match(r"\W*(\w+)", each)[1] for each in given)}
        members = {
            n: f"self.{symbols.get(n, n)}"
            for n in sorted(others)
            if n in symbols or not (n in self.space or hasattr(builtins, n))
        }
        make = wide_function_of if self.kind == "wide" else function_of
        of_self = ["self", *given], lines, members, self.space
        member = make(f"{self.owner.__qualname__}.{name}", *of_self)
        if wrap:
            member = wrap(member, name)
        member.__name__, member.__qualname__ = name, f"{self.owner.__qualname__}.{name}"
        above = getattr(super(self.owner, self.owner), name, None)
        member.__doc__ = getattr(above, "__doc__", None)
        if wrap or self.given is not None:
            return member
        return (lazy_property if self.kind == "lazy" else property)(member)


lazy = partial(formula, kind="lazy")
