"""The machine's steps, counting what they make.

Used for pickles that are large against the allowance, or that could nest tuples
deeply. Prices are CPython's sizes, rounded up, with the place on the stack.
"""

from __future__ import annotations

from _pickle import UnpicklingError
from collections import OrderedDict
from functools import cache
from itertools import repeat

import taeda
from taeda._io import machine

_HEAD = 40  # the garbage collector's header, malloc's rounding, a place on the stack
# A step that pushes what is there already (small integers are); a memo's place.
_FLAT = dict.fromkeys(b"NK\x88\x89)2hjqr\x94c\x93", 16)
# A list for the stack below the mark; a storage; a dictionary's own dictionary.
_FLAT |= {ord("("): 96, ord("Q"): 250, ord("b"): 300}
# Empty containers: one byte of the file, so their time counts too.
_FLAT |= {ord("]"): 160, ord("}"): 160, 0x8F: 600}
# What calls give. Other things, parameters among them, are large.
_CALLED = {OrderedDict: 280, taeda.Tensor: 500, set: 280, taeda.Size: 120, bytes: 120}
_LARGE = 800
# Per item above the mark, or for the one item: its place in a container that grows.
_PER_ITEM = {ord("e"): 16, ord("a"): 16, ord("u"): 84, ord("s"): 170, 0x90: 110}
_MADE = b"MJG\x8a\x8b\x8cX\x8dUTCB\x8e\x96"
_TUPLES = b"t\x85\x86\x87"


def _flat(step, price: int):
    def run(m) -> None:
        m.allowance.spend(price)
        step(m)

    return run


def _per_item(step, price: int, one: bool):
    def run(m) -> None:
        m.allowance.spend(price if one else 170 + price * len(m.stack))
        step(m)

    return run


def _called(step):
    def run(m) -> None:
        step(m)
        m.allowance.spend(_CALLED.get(type(m.stack[-1]), _LARGE))

    return run


def _made(step):
    def run(m) -> None:
        step(m)
        m.allowance.spend(_HEAD + m.stack[-1].__sizeof__())

    return run


def _nested(step):
    """A tuple knows how deep it is, if tuples are in it."""

    def run(m) -> None:
        step(m)
        made, price = m.stack[-1], _HEAD
        if tuple in map(type, made):
            depth = 1 + max(map(m.depths.get, map(id, made), repeat(0)))
            if depth > machine.MAX_DEPTH:
                raise UnpicklingError(
                    f"tuples nested deeper than {machine.MAX_DEPTH} times"
                )
            m.depths[id(made)] = depth
            m.held.append(made)  # its id is not used for another value meanwhile
            price += 160
        m.allowance.spend(price + made.__sizeof__())

    return run


def _watch(code: int, step):
    if code in _FLAT:
        return _flat(step, _FLAT[code])
    if code in _PER_ITEM:
        return _per_item(step, _PER_ITEM[code], one=code in b"as")
    if code in b"R\x81":
        return _called(step)
    if code in _TUPLES:
        return _nested(step)
    return _made(step) if code in _MADE else step


@cache
def watched_steps() -> list:
    """The table of steps that pay for what they make."""
    return [step and _watch(code, step) for code, step in enumerate(machine.STEPS)]
