"""Calls in a checkpoint that copy their argument, which the file may name again and
again: they pay for its size. What hashes its argument has the keys checked."""

from __future__ import annotations

from _codecs import encode as _encode
from _pickle import UnpicklingError
from collections import Counter, OrderedDict

import taeda
from taeda._io.limits import ELEMENT, short
from taeda._io.rebuild import ints

_PAIR = 170  # a place in a dictionary while it grows
_MEMBER = 110


def _of(value, kinds: tuple, what: str):
    if type(value) not in kinds:
        raise UnpicklingError(f"{what} of {short(value)}")
    return value


def latin1(text, encoding):
    """How protocol 2 writes bytes."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"_codecs.encode({short(text)}, {short(encoding)})")
    return _encode(text, "latin1")


def mutable_bytes(data=b"", encoding="latin-1"):
    """A bytearray; a number, for which `bytearray` allocates, is refused."""
    if type(data) is str:
        data = latin1(data, encoding)
    return bytearray(_of(data, (bytes, bytearray), "bytearray"))


def size(entries=()):
    """taeda.Size."""
    return taeda.Size(ints(entries, "a Size"))


def number(real=0.0, imaginary=0.0):
    """complex; a text would be parsed."""
    for part in (real, imaginary):
        _of(part, (int, float), "complex")
    return complex(real, imaginary)


def _paid(function):
    def call(machine, first, *rest):
        # Numbers of a size are looked at one by one; texts are copied as a whole.
        if isinstance(first, (tuple, list)):
            machine.allowance.spend(64 + 4 * ELEMENT * len(first))
        elif isinstance(first, (str, bytes, bytearray)):
            machine.allowance.spend(64 + 16 * len(first))
        return function(first, *rest)

    return call


def _set(machine, items):
    _of(items, (list, tuple, set), "a set")
    machine.allowance.spend(_MEMBER * len(items))
    return machine.hashed(set, items, items)


def _ordered(machine, items):
    """Python 2 wrote the items as a list of pairs."""
    if type(items) is not list:
        items = list(_of(items, (dict, OrderedDict), "an OrderedDict").items())
    for pair in items:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise UnpicklingError(f"an item of an OrderedDict is {short(pair)}")
    machine.allowance.spend(_PAIR * len(items))
    return machine.hashed(OrderedDict, [pair[0] for pair in items], items)


def _counter(machine, counts):
    _of(counts, (dict, OrderedDict, Counter), "a Counter")
    machine.allowance.spend(_PAIR * len(counts))
    result = Counter()
    machine.hashed(dict.update, counts, result, counts)
    return result


_CALLS = {
    set: _set,
    OrderedDict: _ordered,
    Counter: _counter,
    latin1: _paid(latin1),
    mutable_bytes: _paid(mutable_bytes),
    size: _paid(size),
}
# id of a call -> (machine, *arguments) -> what it gives, paid for
BY_ID = {id(call): paid for call, paid in _CALLS.items()}
