"""Objects that captured functions meet: iterators, slots, caches, constants of C."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import functools
import gc
import operator
import re
import subprocess
import sys

import numpy as np
import pytest
import taeda
from taeda.compiler._frames import capture

pattern = re.compile(r"(\d+)")
pause = datetime.timedelta(seconds=3)
second = operator.itemgetter(1)
runs = []


class Slotted:
    __slots__ = ("count", "late", "scale")

    def __init__(self, scale):
        self.scale = scale
        self.count = 0

    def __call__(self, x):
        self.count += 1
        if hasattr(self, "late"):
            return x * self.late
        self.late = x + 1
        return x * self.scale


class Mixed(Slotted):
    def __init__(self, scale):
        super().__init__(scale)
        self.more = [scale]


@dataclasses.dataclass(slots=True)
class Point:
    x: taeda.Tensor
    y: int = 2


@dataclasses.dataclass
class Circle:
    center: Point
    radius: float


@functools.lru_cache(maxsize=4)
def table(n, scale=1.0):
    runs.append(n)
    return taeda.arange(n) * scale


@pytest.fixture
def compared(same):
    """Compares calls on objects that `make` returns, and what is left of them."""

    def compare(function, make=tuple, calls=3, **options):
        compiled = capture(function, **options)
        for _ in range(calls):
            wanted, got = make(), make()
            for _ in range(2):
                same(compiled(*got), function(*wanted))
        return compiled.explain()

    return compare


def slots(x, thing):
    y = thing(x) + thing(x)
    made = Slotted(4)
    return y + made(x), thing.count, thing.late, made.count, made.late


@pytest.mark.parametrize("kind", [Slotted, Mixed])
def test_slots(compared, kind):
    found = compared(slots, lambda: (taeda.ones(2), kind(3)), fullgraph=True)
    assert found["graphs"] == 2  # Where `late` is unset and where it is set.


def test_slots_after_a_break(compared):
    def f(x, thing):
        made = Slotted(x.sum().item())
        y = made(x)
        del thing.scale
        return y, made.count, made.late, hasattr(thing, "scale"), thing.count

    def make():
        return taeda.ones(2), Slotted(3)

    compiled = capture(f)
    for _ in range(3):
        wanted, got = make(), make()
        assert str(compiled(*got)) == str(f(*wanted))
        assert not hasattr(got[1], "scale")


def patterns(x, shape):
    match shape:
        case Circle(Point(center, y=2 as y), radius=float(r)) if r > 1:
            return center * r + y
        case Circle(center=Point(x=taeda.Tensor() as inner)):
            return inner - 1
        case int(n) | [n, *_]:
            return x * n
        case Point(y=3):
            return x
        case Point(z=_):
            return None
    return shape


@pytest.mark.parametrize(
    "make",
    [
        lambda x: Circle(Point(x), 2.0),
        lambda x: Circle(Point(x), 1.0),
        lambda x: 7,
        lambda x: [3, 4],
        lambda x: Point(x, 3),
        lambda x: Point(x, 4).y,
        lambda x: "text",
    ],
)
def test_class_patterns(compared, make):
    def args():
        x = taeda.ones(2)
        return x, make(x)

    compared(patterns, args, fullgraph=True)


def test_class_patterns_that_are_wrong():
    def too_many(x):
        match x:
            case int(1, 2):
                return x

    def twice(x):
        match x:
            case Point(1, x=2):
                return x

    for function, value in ((too_many, 3), (twice, Point(taeda.ones(1)))):
        errors = []
        for f in (function, capture(function)):
            with pytest.raises(TypeError) as caught:
                f(value)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_cached_functions():
    def f(x, n):
        return x + table(n) + table(n), table(n)

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(3)
    table.cache_clear()
    runs.clear()
    for _ in range(3):
        got = compiled(x, 3)
        assert got[0].tolist() == [1, 3, 5] and got[1] is table(3)
    assert runs == [3] and compiled.explain()["graphs"] == 1
    table.cache_clear()
    assert compiled(x, 3)[1] is table(3)
    assert runs == [3, 3]


def test_cached_functions_of_what_a_graph_knows_only(same):
    @functools.cache
    def key(t):
        runs.append("key")
        return t.dim()

    def f(x):
        return x * key(x)

    compiled, x = capture(f), taeda.ones(2, 2)
    runs.clear()
    for _ in range(3):
        same(compiled(x), f(x))
    assert runs == ["key"]


def constants(x):
    found = pattern.match("12ab")
    n = int(found.group(1)) + pause.seconds + second((1, 5))
    return x * n, found.end(), pause * 2


def test_constants_of_c_types(compared):
    found = compared(constants, lambda: (taeda.ones(2),), fullgraph=True)
    assert found["graphs"] == 1


def test_captured_functions_call_captured_ones(same):
    seen = []

    @capture
    def inner(x, k=2):
        seen.append(k)
        return x * k

    class Holder:
        method = capture(lambda self, x: x + self.n)
        n = 3

    def f(x):
        return inner(x) + inner(x, k=3), list(map(inner, [x])), Holder().method(x)

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(2, requires_grad=True)
    for _ in range(2):
        seen.clear()
        got = compiled(x)
        assert seen == [2, 3, 2]
        same(got, f(x))
    assert compiled.explain()["graphs"] == 1


def ranges(x):
    out = []
    for i in range(3):
        out.append(x * i)
        print(i)
    return out


def lists(x):
    out = []
    for i, (a, b) in enumerate(zip([x, x + 1], (2, 3), strict=True), 5):
        out.append(a * i + b)
        print(i)
    return out


def dicts(x):
    table = {"a": x, "b": x + 1, "c": x + 2}
    out = []
    for k, v in table.items():
        out.append((k, v * len(out)))
        print(k)
        table[k] = v + 1
    for k in table:
        out.append(k)
        print(k)
    return out, list(table.values())


def grown(x):
    """Iterators that live through a break over a list that has grown before it."""
    out = [x, 1]
    print("first")
    out += ["a", "b"]
    numbers = iter(out)
    next(numbers), next(numbers), next(numbers)
    for i, v in enumerate(reversed(out)):
        print("turn")
        out[0] = (i, x * i, v)
    return out, next(numbers)


def held(x):
    numbers = iter([1, 2, 3, 4])
    numbered = enumerate(numbers)
    out = [x * next(numbers)]
    print("first")
    out += [next(numbered), x * next(numbers)]
    print("second")
    return out, next(numbered), list(numbers), next(numbers, "end")


@pytest.mark.parametrize(
    "function", [ranges, lists, dicts, grown, held], ids=lambda f: f.__name__
)
def test_breaks_where_iterators_stand(compared, capsys, function):
    found = compared(function, lambda: (taeda.ones(2),))
    assert found["graphs"] >= 2
    assert all("print" in reason for reason, _ in found["reasons"])
    assert capsys.readouterr().out.count("\n") % 12 == 0


def test_an_iterator_of_the_caller_advances(same):
    def f(x, numbers, numbered):
        return x * next(numbers) + next(numbered)[1], sum(range(next(numbers)))

    compiled, x = capture(f, fullgraph=True), taeda.ones(2)
    for _ in range(2):
        results, rests = [], []
        for function in (compiled, f):
            numbers, items = iter(range(2, 7)), [10, 20, 30]
            numbered = enumerate(items)
            results.append(function(x, numbers, numbered))
            results.append(function(x, numbers, numbered))
            rests.append((list(numbers), list(numbered)))
        same(results[:2], results[2:])
        assert rests[0] == rests[1] == ([6], [(2, 30)])


def containers(x):
    table = collections.defaultdict(list, {"a": [x]})
    table["b"].append(2)
    queue = collections.deque([x, 3], maxlen=3)
    print("between")
    table["b"].append(x + 1)
    queue.append(x * 2)
    return dict(table), list(table["new"]), list(queue), queue.maxlen, table.copy()


@pytest.mark.parametrize("broken", [False, True])
def test_containers_of_c_that_were_made_inside(compared, broken, monkeypatch):
    if not broken:
        monkeypatch.setitem(globals(), "print", len)
    compared(containers, lambda: (taeda.ones(2),), fullgraph=not broken)


shift = 1


def test_functions_made_before_a_break_are_of_their_module(monkeypatch):
    def f(x):
        @functools.wraps(ranges)
        def inner(v: int):
            return v + shift

        inner.note = [x]
        print("between")
        return inner

    compiled, x = capture(f), taeda.ones(2)
    for _ in range(2):
        inner = compiled(x)
        assert inner.__globals__ is globals() and inner.__wrapped__ is ranges
        assert inner.__name__ == "ranges" and inner.note[0] is x
        assert inner(1) == 2
        with monkeypatch.context() as changed:
            changed.setitem(globals(), "shift", 5)
            assert inner(1) == 6
    assert not any(part["plain"] for part in compiled.explain()["parts"])


class Scaled(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        runs.append(by)
        ctx.by = by
        ctx.save_for_backward(x)
        return x * by

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        runs.append("backward")
        return grad * ctx.by * 10 + x, None


def test_own_functions_are_clean_breaks(same):
    def f(x):
        y = x * 2
        with taeda.no_grad():
            a = Scaled.apply(y, 3) + 1
        return Scaled.apply(y, 4).sin() + a

    compiled = capture(f)
    x = taeda.randn(3, requires_grad=True)
    for _ in range(3):
        results = []
        for function in (f, compiled):
            runs.clear()
            y = function(x)
            results.append((y, taeda.autograd.grad(y.sum(), x)[0], list(runs)))
        same(*results)
    found = compiled.explain()
    assert found["graphs"] == 3
    assert not any(part["plain"] for part in found["parts"])


def test_names_that_are_not_interned_stay_what_they_are() -> None:
    # As `pickle` and `copy` leave them in the dicts of what they make.
    class Holder:
        pass

    def read(holder, x):
        return x + len(vars(holder)) + holder.first_of_them

    holder, names = Holder(), ["_".join(["first", "of", "them"]), "".join(["o", "ne"])]
    for name in names:
        vars(holder)[name] = 1

    def capture_anew() -> list[int]:
        compiled = taeda.compile(read, backend="eager")
        assert compiled(holder, taeda.zeros(1)).tolist() == [3]
        del compiled
        gc.collect()
        return [sys.getrefcount(name) for name in names]

    # The interpreter's caches may take a reference at first.
    before = capture_anew()
    assert [capture_anew() for _ in range(3)] == [before] * 3


def test_cached_functions_take_names() -> None:
    asked = []

    @functools.cache
    def parsed(pattern, kind):
        asked.append((pattern, kind))
        return len(pattern)

    def program(x):
        return x * parsed("a b", kind="pack")

    compiled = taeda.compile(program, backend="eager")
    for _ in range(2):
        assert compiled(taeda.ones(2)).tolist() == [3, 3]
    assert asked == [("a b", "pack")] and compiled.explain()["graphs"] == 1


def test_modules_that_are_imported_later_are_no_other_graph(monkeypatch) -> None:
    def program(x):
        return x + 1 if "sys" in sys.modules else x - 1

    compiled = taeda.compile(program, backend="eager", fullgraph=True)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    monkeypatch.setitem(sys.modules, "imported_later", taeda)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    assert compiled.explain()["graphs"] == 1


@dataclasses.dataclass
class Held:
    x: object
    count: int = 0


def test_objects_are_copied_in_graphs() -> None:
    def program(held):
        other = copy.copy(held)
        other.count += 1
        other.x = held.x * 2
        return other, copy.deepcopy({"a": [1, 2]})

    compiled = taeda.compile(program, backend="eager", fullgraph=True)
    held = Held(taeda.ones(2), 4)
    other, table = compiled(held)
    assert type(other) is Held and other.count == 5 and other.x.tolist() == [2, 2]
    assert held.count == 4 and held.x.tolist() == [1, 1] and table == {"a": [1, 2]}


def test_names_of_the_library_that_are_opened_late() -> None:
    program = (
        "import taeda; p = taeda.nn.Parameter(taeda.ones(4)); p.grad = p.detach() * 3;"
        "clip = taeda.compile(lambda: taeda.nn.utils.clip_grad_norm_([p], 1.0),"
        " backend='eager', fullgraph=True); print(clip().item(), p.grad.norm().item())"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert [round(float(n), 3) for n in out.stdout.split()] == [6.0, 1.0]


def test_arrays_that_are_made_inside() -> None:
    def program(x):
        return taeda.from_numpy(np.ones(3, dtype=np.float32)) * x

    compiled = taeda.compile(program, backend="eager", fullgraph=True)
    first = compiled(taeda.ones(3))
    first.add_(1)
    assert compiled(taeda.ones(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_branches_by_elements_under_fullgraph(backend) -> None:
    def program(x):
        return taeda.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))

    compiled = taeda.compile(program, backend=backend, fullgraph=True)
    for x in (taeda.ones(3), -taeda.ones(3)):
        assert compiled(x).equal(program(x))


OUTSIDE = 5


@pytest.mark.parametrize(
    "text",
    (
        "eval('x * k + OUTSIDE')",
        "globals()['OUTSIDE'] + k",
        "exec('k = OUTSIDE') or k",
        "[eval('i + OUTSIDE', {'i': i, **globals()}) for i in range(k)]",
    ),
)
@pytest.mark.parametrize("before", ("", "x.sum().item()"))
def test_names_are_looked_up_where_the_program_stands(text, before, same) -> None:
    space = {"OUTSIDE": 7}
    exec(f"def function(x):\n    k = 3\n    {before}\n    return {text}, x", space)
    same(taeda.compile(space["function"])(X := taeda.ones(2)), space["function"](X))


def test_views_of_dicts_from_outside(same) -> None:
    def function(x, keys, values, items):
        n = 3 if "c" in keys else len(keys & {"a", "z"})
        return x * n + sum(values), [k * v for k, v in items], keys

    table = {"a": 1, "b": 2}
    compiled = capture(function, fullgraph=True)
    for _ in range(2):
        given = taeda.ones(2), table.keys(), table.values(), table.items()
        same(compiled(*given), function(*given))
        table["c"] = 5


def test_a_function_in_its_own_closure() -> None:
    def function(x):
        def inner():
            return inner

        return x + 1, inner

    _, inner = capture(function, fullgraph=True)(taeda.ones(2))
    assert inner() is inner


PRECISIONS = {taeda.float16: (0.0, 1e-5), taeda.float32: (0.0, 0.0)}


def test_numbers_behind_keys_of_one_class(same) -> None:
    def function(x):
        return [x * a + b for a, b in map(PRECISIONS.get, PRECISIONS)]

    compiled = capture(function, fullgraph=True)
    same(compiled(taeda.ones(2)), function(taeda.ones(2)))


@pytest.mark.parametrize("dynamic", [None, True])
def test_one_float_in_two_places(dynamic, same) -> None:
    def function(x, a, b):
        return x * a + b

    compiled = capture(function, fullgraph=True, dynamic=dynamic)
    for v in (1.5, 2.5, 3.5, 4.5):
        same(compiled(taeda.ones(2), v, v), function(taeda.ones(2), v, v))
        same(compiled(taeda.ones(2), v, 7.5), function(taeda.ones(2), v, 7.5))
    assert compiled.explain()["graphs"] <= 3
