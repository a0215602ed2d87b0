"""What CPython's versions compile or keep differently."""

from __future__ import annotations

import gc
import sys
import traceback

import pytest
import taeda
from taeda.compiler._frames import capture


class Base:
    offset = 2

    def scaled(self, x, *, by=1):
        return x * by + self.offset


class Derived(Base):
    offset = 3

    def scaled(self, x, *, by=1):
        return super().scaled(x, by=by) - super().offset

    def explicit(self, x):
        scaled = super(Derived, self).scaled(x)  # noqa: UP008
        return scaled + Base.offset

    def bound(self, x):
        method = super().scaled
        return method(x)


def supers(x):
    thing = Derived()
    return thing.scaled(x, by=2), thing.explicit(x), thing.bound(x)


def slices(x):
    values = [1, 2, 3, 4]
    values[1:3] = [7]
    values[:1] = values[-1:]
    return x[1:], x[:, :2], values, values[::2]


def comparisons(x):
    n = x.dim()
    kept = [i for i in range(5) if 1 < i <= n + 1 or not i]
    flag = n is not None and n in (1, 2) and n == 2
    return x * len(kept), kept, flag, not kept, None if n else 1


def formats(x):
    width = 6
    text = f"{x.dim():>{width}}|{'a'!r}|{3.14159:.2f}|{'b'!s:>3}|{'ä'!a}"
    return x + len(text), text


def keywords(x):
    def f(a, b=1, *, c=2, **rest):
        return a * b + c + sum(rest.values())

    def g(*args, **kw):
        return f(*args, **kw)

    return f(x, c=3), f(x, b=2, d=4), g(x, 2, c=1), max(3, 1, key=lambda v: -v)


def nested_comprehensions(x):
    i = "kept"
    rows = [[x * (i + k) for k in range(2)] for i in range(2)]
    table = {i: {k * 2 for k in range(i)} for i in range(3)}
    late = [lambda: i for i in range(2)]  # noqa: B023
    return rows, table, [f() for f in late], i


def comprehensions_of_cells(x):
    y = 1

    def read():
        return y

    doubled = [y * 2 for y in (3, 4)]
    return x * sum(doubled), read()


def positives(x):
    return +x, +(-3), (*[1, 2], 3)


def loops_of_ranges(x):
    outer = iter(range(1, 9, 2))
    first = next(outer)
    for i in outer:
        if i > 4:
            break
        x = x + i
    else:
        x = x * 100
    return x, first, list(outer)


def early_returns(x):
    def f(n):
        if n:
            return None
        return 3

    def nothing():
        pass

    return x, f(0), f(1), nothing()


def generators_in_generators(x):
    def inner():
        got = []
        for i in range(2):
            try:
                got.append((yield x + i))
            except KeyError:
                got.append("key")
        return got

    def outer():
        result = yield from inner()
        yield result

    made = outer()
    first = next(made)
    second = made.throw(KeyError())
    return first, second, made.send(5)


def ended_generators(x):
    def inner():
        yield x
        return 7

    def outer():
        value = yield from inner()
        yield value

    return list(outer()), next((v for v in () if v), None)


def stop_iteration(x):
    def broken():
        yield x
        next(iter(()))

    try:
        list(broken())
    except RuntimeError as error:
        return x, str(error), type(error.__cause__)
    return None


def closed_generators(x):
    log = []

    def parts():
        try:
            yield x
            yield x + 1
        finally:
            log.append("closed")

    made = parts()
    kept = next(made)
    made.close()
    return kept, log


def handlers(x):
    log = []
    for i in range(3):
        try:
            try:
                if i == 1:
                    raise ValueError(i)
                log.append(10 // i)
            finally:
                log.append("finally")
        except (ZeroDivisionError, ValueError) as error:
            log.append(type(error).__name__)
        else:
            log.append("else")
    return x, log


FUNCTIONS = [
    supers,
    slices,
    comparisons,
    formats,
    keywords,
    nested_comprehensions,
    comprehensions_of_cells,
    positives,
    loops_of_ranges,
    early_returns,
    generators_in_generators,
    ended_generators,
    stop_iteration,
    closed_generators,
    handlers,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_graph(function, same):
    x = taeda.randn(2, 3, requires_grad=True)
    compiled = capture(function, fullgraph=True)
    for _ in range(2):
        same(compiled(x), function(x))
    assert compiled.explain()["graphs"] <= 1


def test_a_break_in_a_comprehension_resumes_in_its_middle(capsys, same):
    def f(x):
        i = x + 1
        made = [(print(k), x * k)[1] for k in range(3)]
        return made, {k: v.sum().item() for k, v in enumerate(made)}, i

    compiled = capture(f)
    x = taeda.ones(2)
    for _ in range(2):
        same(compiled(x), ([x * 0, x, x * 2], {0: 0.0, 1: 2.0, 2: 4.0}, x + 1))
        assert capsys.readouterr().out == "0\n1\n2\n"


def test_an_outside_iterator_of_a_range_is_advanced():
    def f(x, positions):
        return [x * next(positions) for _ in range(2)]

    compiled = capture(f, fullgraph=True)
    positions = iter(range(1, 10, 3))
    assert [v.item() for v in compiled(taeda.tensor(2), positions)] == [2, 8]
    assert list(positions) == [7]


def test_frames_that_c_code_calls_are_cleared():
    class Held:
        pass

    def f(x):
        def key(value):
            held = Held()
            return held, -value

        return x + sorted([1, 2], key=lambda v: key(v)[1])[0]

    compiled = capture(f, fullgraph=True)
    assert compiled(taeda.ones(1)).item() == 3
    gc.collect()
    assert not any(isinstance(o, Held) for o in gc.get_objects())


def test_the_garbage_collector_runs_while_generators_do(same):
    def f(x):
        def parts():
            for i in range(3):
                loop = [x]
                loop.append(loop)
                del loop
                gc.collect()
                yield x + i

        return list(parts())

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        x = taeda.ones(2)
        compiled = capture(f)
        same(compiled(x), f(x))
    finally:
        gc.set_threshold(*before)


def test_a_caller_handles_what_the_instruction_of_a_break_raises(same):
    def inner(x):
        return open(f"no such file {x.dim()}")

    def f(x):
        try:
            inner(x)
        except FileNotFoundError:
            return x + 1

    compiled = capture(f)
    x = taeda.ones(1)
    for _ in range(2):
        same(compiled(x), x + 1)
        assert sys.exception() is None


def test_endless_recursion_through_c_code_is_the_programs_error():
    def f(x):
        def deeper(n):
            return sorted([n], key=lambda v: deeper(v + 1))[0]

        try:
            return deeper(0)
        except RecursionError:
            return x + 1

    compiled = capture(f)
    assert compiled(taeda.ones(1)).item() == 2
    assert any("too deeply" in reason for reason, _ in compiled.explain()["reasons"])


def test_tracebacks_have_each_line_once():
    def inner(x):
        raise KeyError("here")

    def f(x):
        return sorted([x], key=inner)

    def frames_of(function):
        try:
            function(taeda.ones(1))
        except KeyError:
            trace = traceback.extract_tb(sys.exc_info()[2])
            return [(e.name, e.lineno) for e in trace if e.filename == __file__]
        return None

    assert frames_of(capture(f))[-2:] == frames_of(f)[-2:]


class Plain:
    pass


class Slotted:
    __slots__ = ("n",)


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_guards_see_attributes_of_instances(kind):
    thing = kind()
    thing.n = 1

    def f(x):
        return x * thing.n

    def set_n(value):
        thing.n = value

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(1)
    # So often that the interpreter has specialised the assignment.
    for n in [1] * 50 + [2, 3, 2]:
        set_n(n)
        assert compiled(x).item() == n
    setattr(thing, "".join("n"), 5)
    assert compiled(x).item() == 5
    if kind is Plain:
        thing.__dict__["n"] = 6
        assert compiled(x).item() == 6
        thing.__dict__ = {"n": 7}
        assert compiled(x).item() == 7
        vars(thing).update(n=8)
        assert compiled(x).item() == 8


CHANGES = {
    "item": lambda d: d.__setitem__("a", 2),
    "update": lambda d: d.update(a=2),
    "union": lambda d: d.__ior__({"a": 2}),
    "pop": lambda d: (d.pop("a"), d.setdefault("a", 2)),
    "clear": lambda d: (d.clear(), d.update({"a": 2})),
    "popitem": lambda d: (d.popitem(), d.__setitem__("a", 2)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_guards_see_changes_of_dicts(change):
    table = {"a": 1}

    def f(x):
        return x * table["a"]

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(1)
    assert [compiled(x).item() for _ in range(2)] == [1, 1]
    change(table)
    assert compiled(x).item() == 2


def test_guards_see_another_object_in_place_of_a_dead_one():
    def f(m, x):
        return x * m.n

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(1)
    for n in (1, 1, 2, 1, 3, 2):
        thing = Plain()
        thing.n = n
        assert compiled(thing, x).item() == n
        del thing
