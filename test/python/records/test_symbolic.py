"""The rules of sizes over symbols say what they say over integers.

Calls of all records with such a rule are made on meta tensors twice: with the sizes,
and with symbols that have these sizes as hints. The results have the same geometry,
guards hold, errors are of one type. A third call has other sizes, for which the guards
hold: there the expressions give what that call gives.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import taeda
from all_calls import OVERLOADS, all_calls, overload_of, tensors_in, with_tensors
from taeda import _shapes
from taeda.fx.experimental.symbolic_shapes import ShapeEnv, is_symbolic

from tools.codegen.record_types import Kernel, Pointwise, Reduction, View

# What the loop has to reach at least: overloads, calls whose results have symbols, and
# calls that were made again with other sizes.
OVERLOADS_REACHED, SYMBOLS_KEPT, OTHER_SIZES = 370, 740, 770


def has_rule(name: str) -> bool:
    body = OVERLOADS[name].body
    if isinstance(body, Kernel):
        return body.shape is not None
    if isinstance(body, View):
        return body.rule is not None
    return isinstance(body, (Pointwise, Reduction))


@cache
def cases() -> list[tuple[str, dict]]:
    calls = all_calls()
    return [
        (name, values)
        for name in sorted(calls)
        if has_rule(name)
        for values in calls[name]
        if all(fits(t) for t in tensors_in(list(values.values())))
    ]


def fits(t: taeda.Tensor) -> bool:
    # Numbers that stand for tensors have no place on the meta device.
    return not t.is_conj() and not t.is_neg()


class Symbols:
    """The symbols of one call: a dim of every tensor each, by name."""

    def __init__(self) -> None:
        self.env, self.hints = ShapeEnv(), {}

    def size(self, n: int):
        name = f"n{len(self.hints)}"
        self.hints[name] = n
        return self.env.create_size(n, name, "marked")

    def tensor(self, t: taeda.Tensor) -> taeda.Tensor:
        sizes = [self.size(n) for n in t.shape]
        order = sorted(range(t.dim()), key=lambda d: (t.stride(d), -d))
        strides = list(t.stride())
        product, seen = 1, 1
        for d in order:
            if strides[d] != seen:
                product = seen = strides[d]
            strides[d] = product
            product, seen = product * sizes[d], seen * t.shape[d]
        return taeda.empty_strided(sizes, strides, dtype=t.dtype, device="meta")


def called(name: str, values: dict, tensors: list) -> list | type:
    """The tensors of the results, or the type of the error."""
    given = iter(tensors)
    new = {n: with_tensors(v, given) for n, v in values.items()}
    if "device" in new:
        new["device"] = "meta"
    try:
        out = overload_of(OVERLOADS[name].schema)(**new)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return type(error)
    return list(tensors_in(out))


def geometry(t: taeda.Tensor) -> tuple:
    return tuple(t.shape), t.stride(), t.dtype


NAMES = {"Min": min, "Max": max, "Mod": lambda a, b: a % b, "__builtins__": {}}


def evaluated(t: taeda.Tensor, values: list[int]) -> tuple:
    """A symbolic tensor's geometry for these values of the symbols."""
    known = {f"s{i}": v for i, v in enumerate(values)}
    number = lambda v: eval(repr(v), NAMES, known)
    return tuple(map(number, t.shape)), tuple(map(number, t.stride())), t.dtype


def compare(name: str, values: dict) -> tuple[str, bool]:
    """Calls with numbers and with symbols: what was seen, and if other sizes agreed."""
    tensors = list(tensors_in(list(values.values())))
    wanted = called(name, values, [meta(t.shape, t.stride(), t) for t in tensors])
    symbols = Symbols()
    given = [symbols.tensor(t) for t in tensors]
    _shapes.take_symbolic_fallbacks()
    found = called(name, values, given)
    assert not _shapes.take_symbolic_fallbacks(), "it was computed without its rule"
    if isinstance(wanted, type):
        assert found is wanted, (found, wanted)
        return "error", False
    assert not isinstance(found, type), found
    hints = symbols.hints
    assert [evaluated(t, [*hints.values()]) for t in found] == [
        geometry(t) for t in wanted
    ]
    assert symbols.env.fits(hints), symbols.env.guards
    kept = any(is_symbolic(n) for t in found for n in t.shape)
    other = others_agree(name, values, symbols, given, found)
    return "symbols" if kept else "fixed", other


def others_agree(name, values, symbols, given, found) -> bool:
    """The same for other sizes that the guards allow, if some are found."""
    for _ in range(20):
        step = random.randint(1, 3)
        other = {n: v + random.choice((0, step)) for n, v in symbols.hints.items()}
        if other == symbols.hints or not symbols.env.fits(other):
            continue
        sizes = [*other.values()]
        plain = [meta(*evaluated(t, sizes)[:2], t) for t in given]
        wanted = called(name, values, plain)
        assert not isinstance(wanted, type), (other, wanted, symbols.env.guards)
        assert [evaluated(t, sizes) for t in found] == [geometry(t) for t in wanted]
        return True
    return False


def meta(sizes, strides, like: taeda.Tensor) -> taeda.Tensor:
    return taeda.empty_strided(sizes, strides, dtype=like.dtype, device="meta")


def test_symbols_agree_with_numbers():
    random.seed(0)
    failed, seen, others = {}, Counter(), 0
    for name, values in cases():
        try:
            kind, other = compare(name, values)
        except Exception as error:
            failed.setdefault(name, f"{type(error).__name__}: {error}"[:400])
            continue
        seen[kind] += 1
        others += other
    overloads = len({name for name, _ in cases()})
    print(f"{overloads} overloads, calls {dict(seen)}, {others} with other sizes")
    assert not failed, "\n".join(f"{k}: {v}" for k, v in failed.items())
    assert overloads >= OVERLOADS_REACHED
    assert seen["symbols"] >= SYMBOLS_KEPT
    assert others >= OTHER_SIZES
