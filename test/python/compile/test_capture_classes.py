"""Classes whose attributes change, dataclasses and namespaces in captured functions."""

from __future__ import annotations

import dataclasses
import types

import pytest
import taeda
from taeda._dynamo.exc import Unsupported
from taeda.compiler._frames import capture


def counting():
    class Base:
        count, names, kind = 0, [], "base"

    class Sub(Base):
        kind = "sub"

    return Base, Sub


def reads_what_it_wrote(x, base, sub):
    base.count += 1
    base.names.append("n")
    y = x + base.count + sub().count
    sub.count = 7
    base.count += 1
    return y, base.count, sub.count, sub().count, getattr(base, "count", 0), sub.names


def overridden(x, base, sub):
    base.kind = "changed"
    return x + 1, base.kind, sub.kind, sub().kind, base().kind


def by_setattr(x, base, sub, name="count"):
    setattr(base, name, 5)
    kept = base()
    kept.count += 1
    return x * base.count, kept.count, sub.count


@pytest.mark.parametrize("function", [reads_what_it_wrote, overridden, by_setattr])
def test_attributes_of_classes(function, same) -> None:
    def state(classes):
        return [
            {k: v for k, v in vars(c).items() if not k.startswith("__")}
            for c in classes
        ]

    compiled, x = capture(function), taeda.ones(2)
    ours, wanted = counting(), counting()
    for _ in range(3):
        same(compiled(x, *ours), function(x, *wanted))
        assert state(ours) == state(wanted)
    if function is not reads_what_it_wrote:  # which makes an attribute of a class
        whole, theirs = capture(function, fullgraph=True), counting()
        whole(x, *theirs)


def test_a_write_that_a_graph_may_not_hold_is_done_once() -> None:
    written = []

    class Meta(type):
        def __setattr__(cls, name, value):
            written.append(name)
            super().__setattr__(name, value)

    class Held(metaclass=Meta):
        count = 0

    def function(x, name="count"):
        setattr(Held, name, Held.count + 1)
        return x + Held.count

    compiled = capture(function)
    assert [compiled(taeda.ones(1)).tolist() for _ in range(2)] == [[2], [3]]
    assert written == ["count", "count"]


@dataclasses.dataclass
class State:
    value: object
    step: int = 0
    tags: list = dataclasses.field(default_factory=list)

    def advance(self):
        self.tags.append(self.step)
        return dataclasses.replace(self, value=self.value * 2, step=self.step + 1)


def test_a_dataclass_with_a_default_factory(same) -> None:
    def function(x):
        state = State(x)
        for _ in range(3):
            state = state.advance()
        return state.value, state.step, state.tags

    compiled = capture(function, fullgraph=True)
    x = taeda.ones(2)
    for _ in range(2):
        same(compiled(x), function(x))
    assert compiled.explain()["graphs"] == 1


def test_a_namespace(same) -> None:
    def function(x, space, name="b"):
        setattr(space, name, space.a + 4)
        space.c = x + space.b
        made = types.SimpleNamespace(k=space.c, empty=types.SimpleNamespace())
        return space.c * len(vars(space)), made.k, vars(made.empty), made

    compiled, x = capture(function, fullgraph=True), taeda.ones(2)
    for _ in range(2):
        ours, wanted = types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)
        *got, made = compiled(x, ours)
        *expected, _ = function(x, wanted)
        same(got, expected)
        same(vars(ours), vars(wanted))
        assert repr(made.empty) == "namespace()" and taeda.equal(made.k, ours.c)


def test_a_class_that_is_defined_inside(same) -> None:
    def function(x, k):
        y = x * 2

        class Scale(State):
            factor = k

            def __init__(self, value):
                super().__init__(value)
                self.held = value + y

            def scaled(self):
                return self.held * self.factor

        made = Scale(x)
        return made.scaled() + 1, made.value, Scale.__name__, Scale.factor

    compiled, x = capture(function), taeda.ones(2)
    for k in (2, 2, 3):
        same(compiled(x, k), function(x, k))
    reasons = [reason for reason, _ in compiled.explain()["reasons"]]
    assert "__build_class__" in reasons[0] and compiled.explain()["graphs"] >= 2
    with pytest.raises(Unsupported, match="Define classes outside"):
        capture(function, fullgraph=True)(x, 2)


def test_what_super_finds_is_guarded():
    class A:
        scale = 4

        def shift(self, x):
            return x + 1

    class B(A):
        def run(self, x):
            return super().shift(x) * super().scale

        def shift(self, x):
            return x

    run = taeda.compile(B().run, backend="eager", fullgraph=True)
    x = taeda.ones(2)
    assert run(x).tolist() == [8, 8]
    A.scale = 5
    assert run(x).tolist() == [10, 10]
    A.shift = lambda self, x: x + 2
    assert run(x).tolist() == [15, 15]


def test_allowed_functions_take_objects_that_were_made_inside():
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class Pair:
        x: taeda.Tensor
        y: taeda.Tensor
        z: int = 5

    @taeda.compiler.allow_in_graph
    def inner(pair, *, other):
        return pair.x + pair.y * pair.z + other.z

    run = taeda.compile(
        lambda x: inner(Pair(x, x + 1), other=Pair(x, x, 7)),
        backend="eager",
        fullgraph=True,
    )
    assert run(taeda.ones(2)).tolist() == [18, 18]


def one():
    return 1


def scaled(*, by=1):
    return by


class Replaced:
    @property
    def size(self):
        return 1

    @staticmethod
    def made():
        return 1


# What reads something, and what a program changes meanwhile: (owner, name, value).
REPLACEMENTS = {
    "property": (lambda: Replaced().size, Replaced, "size", property(lambda self: 2)),
    "static": (lambda: Replaced().made(), Replaced, "made", staticmethod(lambda: 2)),
    "of class": (lambda: Replaced.made(), Replaced, "made", staticmethod(lambda: 2)),
    "code": (one, one, "__code__", (lambda: 2).__code__),
    "defaults": (lambda: scaled(), scaled, "__kwdefaults__", {"by": 2}),
}


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_what_classes_and_functions_hold_is_replaced(name):
    read, owner, attribute, value = REPLACEMENTS[name]
    compiled = taeda.compile(lambda x: x + read(), backend="eager", fullgraph=True)
    x = taeda.zeros(1)
    assert compiled(x).item() == 1
    if isinstance(owner, type):
        before = owner.__dict__[attribute]
    else:
        before = getattr(owner, attribute)
    setattr(owner, attribute, value)
    try:
        assert compiled(x).item() == 2
    finally:
        setattr(owner, attribute, before)
    assert compiled(x).item() == 1


def test_attributes_that_come_after_all_were_looked_at():
    thing = Replaced()
    compiled = taeda.compile(
        lambda x: x + thing.__dict__.get("late", 1), backend="eager", fullgraph=True
    )
    x = taeda.zeros(1)
    for late in (None, 5, 7):
        if late is not None:
            thing.late = late
        assert compiled(x).item() == (late or 1)
    del thing.late
    assert compiled(x).item() == 1


def test_hooks_that_come_after_others():
    module = taeda.nn.Identity()
    compiled = taeda.compile(module, backend="eager")
    x = taeda.ones(1)
    assert compiled(x).item() == 1
    first = module.register_forward_hook(lambda module, args, out: out * 2)
    assert compiled(x).item() == 2
    second = module.register_forward_pre_hook(lambda module, args: args[0] + 3)
    assert compiled(x).item() == 8
    first.remove()
    assert compiled(x).item() == 4
    second.remove()
    assert compiled(x).item() == 1
