"""Objects that were different ones, or the same one, in an earlier call."""

from __future__ import annotations

import itertools

import pytest
import taeda


class Thing:
    pass


def added(a, b):
    both = set()
    both.add(a)
    both.add(b)
    return len(both)


def written(a, b):
    a.number = 1
    b.number = 2
    return a.number


PROGRAMS = {
    "is": lambda a, b: a is b,
    "set": lambda a, b: len({a, b}),
    "added": added,
    "dict": lambda a, b: len({a: 1, b: 2}),
    "get": lambda a, b: {a: 5}.get(b, 0),
    "hash": lambda a, b: hash(a) == hash(b),
    "any": lambda a, b: any(each is b for each in [a]),
}
OF_OBJECTS = {
    "equal": lambda a, b: a == b,
    "in": lambda a, b: a in [b],
    "lists": lambda a, b: [a] == [b],
    "index": lambda a, b: [a, b].index(b),
    "written": written,
}
KINDS = {
    "tensor": lambda: taeda.ones(1),
    "object": Thing,
    "module": taeda.nn.ReLU,
}


def both_orders(make):
    one, other = make(), make()
    return itertools.permutations([(one, one), (one, other)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_identity_is_guarded(name, kind):
    for calls in both_orders(KINDS[kind]):
        compiled = taeda.compile(PROGRAMS[name], backend="eager")
        for call in calls:
            assert compiled(*call) == PROGRAMS[name](*call)


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_identity_of_objects_is_guarded(name):
    for calls in both_orders(Thing):
        compiled = taeda.compile(OF_OBJECTS[name], backend="eager")
        for call in calls:
            assert compiled(*call) == OF_OBJECTS[name](*call)


def test_one_list_under_two_names():
    def program(x, a, b):
        a.append(1)
        return x + len(b)

    compiled = taeda.compile(program, backend="eager")
    x, one = taeda.zeros(1), []
    assert compiled(x, [], []).item() == 0
    assert compiled(x, one, one).item() == 1
    assert one == [1]


def test_what_hangs_on_dicts_that_did_not_change():
    holder = taeda.nn.Module()
    holder.weight = taeda.ones(1)
    compiled = taeda.compile(lambda x: x is holder.weight, backend="eager")
    for _ in range(3):
        assert compiled(taeda.ones(1)) is False
    assert compiled(holder.weight) is True
    assert compiled(taeda.ones(1)) is False


def test_recompile_reason_names_both_places():
    compiled = taeda.compile(lambda a, b: a + b, backend="eager")
    x = taeda.ones(1)
    compiled(x, taeda.ones(1))
    with (
        taeda._dynamo.config.patch(error_on_recompile=True),
        pytest.raises(taeda._dynamo.exc.RecompileError, match="another object"),
    ):
        compiled(x, x)


def test_generator_without_an_end():
    def program(x):
        def endless():
            while True:
                yield x

        return list(endless())

    with pytest.raises(taeda._dynamo.exc.Unsupported, match="infinite generator"):
        taeda.compile(program, fullgraph=True, backend="eager")(taeda.ones(1))


@pytest.mark.parametrize("orders", [(True, False, True), (False, True, False)])
def test_variables_that_functions_share(orders):
    def made():
        n = 0

        def add():
            nonlocal n
            n += 1

        return add, lambda: n

    def program(x, add, read):
        add()
        return x + read()

    compiled = taeda.compile(program, backend="eager")
    for shared in orders:
        add, read = made()
        read = read if shared else made()[1]
        assert compiled(taeda.zeros(1), add, read).item() == shared
