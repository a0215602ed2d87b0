"""Objects that capture makes again, and the order of what it leaves in dicts."""

from __future__ import annotations

import gc
import os
import types
import typing
import weakref
from collections import OrderedDict

import pytest
import taeda


class Pair(typing.NamedTuple):
    a: int
    b: int


class Marked(Pair):
    """A tuple with attributes besides."""


def counts(x, n=3, *rest, k=2, **named):
    y = x + n
    yield y
    yield y * k + sum(rest) + len(named)


def whole(function):
    taeda.compiler.reset()
    return taeda.compile(function, backend="eager", fullgraph=True)


def moved(x):
    out = OrderedDict(a=x.cos(), b=3)
    out.move_to_end("a")
    return list(out), out


def views(x):
    held = {"a": x + 1, "b": 2}
    return held.items(), held.keys(), held.values(), types.MappingProxyType(held)


def generators(x):
    own = (x + i for i in range(2))
    return (
        list(counts(x)),
        counts(x, 1, 5, k=4, more=0),
        zip(range(2), own, strict=True),
    )


def marked(x):
    out = Marked(1, 2)
    out.c = x * 2
    return out, out.c


def named_variables(x):
    y = x + 1
    return sorted(vars()) + dir(), y


def joined(x):
    return os.path.join("a", "b"), x + 1


def caught(x):
    try:
        raise ValueError("no")
    except ValueError as error:
        trace = error.__traceback__
        return x + (trace is not None), trace.tb_lineno > 0, trace.tb_next is None


PROGRAMS = [moved, views, generators, marked, named_variables, joined, caught]


def plain(value):
    """What can be compared with `==`."""
    if isinstance(value, taeda.Tensor):
        return value.tolist()
    if isinstance(value, (dict, types.MappingProxyType)):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (str, int)):
        return value
    return [plain(each) for each in value]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_results_are_those_of_eager_code(program):
    x = taeda.ones(2)
    expected, found = program(x), whole(program)(x)
    assert [type(each) for each in found] == [type(each) for each in expected]
    assert plain(found) == plain(expected)


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_a_key_that_is_put_in_again_comes_last(kind):
    def turn(x, held):
        held["a"] = held.pop("a")
        return x + 1

    held = kind(a=1, b=2)
    whole(turn)(taeda.ones(1), held)
    assert list(held.items()) == [("b", 2), ("a", 1)]


def test_the_order_of_an_ordered_dict_is_guarded():
    def weighed(x, held):
        return sum(x * (i + 1) * each for i, each in enumerate(held.values()))

    held, x = OrderedDict(a=1, b=2), taeda.ones(1)
    compiled = whole(weighed)
    for _ in range(3):
        assert compiled(x, held).item() == weighed(x, held).item()
        held.move_to_end(next(iter(held)))


def test_attributes_of_a_tuple_are_written_and_guarded():
    def more(x, held):
        held.c = x + held.d
        return held

    held = Marked(1, 2)
    compiled = whole(more)
    for held.d in (5, 7):
        assert compiled(taeda.ones(1), held) is held
        assert held.c.item() == 1 + held.d


def test_errors_keep_those_that_they_come_of():
    def fails(x):
        error = ValueError(1)
        error.__context__, error.__cause__ = TypeError(), RuntimeError()
        return x, error

    error = whole(fails)(taeda.ones(1))[1]
    assert isinstance(error.__context__, TypeError)
    assert isinstance(error.__cause__, RuntimeError)
    assert error.__suppress_context__


def test_a_mapping_proxy_shows_its_dict():
    def read(x, shown):
        return x * shown["a"] + sum(shown.values())

    held = {"a": 2, "b": 3}
    shown, compiled = types.MappingProxyType(held), whole(read)
    for held["a"] in (2, 5):
        assert compiled(taeda.ones(1), shown).item() == 2 * held["a"] + 3


def test_a_weak_reference_leads_to_its_object_or_to_nothing():
    def asks(x, reference):
        there = reference()
        return x + 1 if there is None else there + x

    held, x = taeda.ones(1), taeda.ones(1)
    reference, compiled = weakref.ref(held), whole(asks)
    held.fill_(4)
    assert compiled(x, reference).item() == 5
    del held
    gc.collect()
    assert compiled(x, reference).item() == 2
    made = whole(lambda x: (weakref.ref(y := x + 1), y))(x)
    assert made[0]() is made[1]


def test_a_graph_may_have_a_profiler_in_it():
    def profiled(x):
        with taeda.profiler.profile(), taeda.profiler.record_function("more"):
            x = x + 1
        return x

    for _ in range(2):
        assert whole(profiled)(taeda.ones(1)).item() == 2
    with taeda.profiler.profile() as seen:
        taeda.ones(1)
    assert len(seen.events()) > 0
