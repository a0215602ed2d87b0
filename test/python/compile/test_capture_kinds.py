"""Classes of tensors and of containers in captured functions."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

import pytest
import taeda
from taeda.compiler._frames import capture

log = []


class Tagged(taeda.Tensor):
    """Inherits what calls do: results are of this class."""

    def twice(self):
        return self * 2


class Logged(taeda.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        log.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Tenfold(taeda.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [
            a.as_subclass(taeda.Tensor) if isinstance(a, Tenfold) else a for a in args
        ]
        factor = 10 if func is taeda.add else 1
        return func(*plain, **(kwargs or {})) * factor


class Swapping(taeda.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return (taeda.mul if func is taeda.add else func)(*args, **(kwargs or {}))


def methods(x):
    return (x.twice() + 1).sin()


def functions(x):
    return taeda.add(x, 1), x * 2


def kinds(x):
    return type(x).__name__, isinstance(x, Tagged), x.as_subclass(taeda.Tensor) + 1


def with_modes(x):
    with Swapping():
        y = taeda.add(x, 3)
    return y, taeda.add(x, 3)


@pytest.mark.parametrize("with_module", [False, True])
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        *((methods, Tagged), (kinds, Tagged), (functions, Logged)),
        *((functions, Tenfold), (functions, Tagged), (with_modes, taeda.Tensor)),
    ],
)
def test_classes_of_tensors_decide_what_calls_do(function, kind, with_module, same):
    backend = (lambda gm, inputs: gm.forward) if with_module else None
    compiled = capture(function, fullgraph=True, backend=backend)
    for _ in range(2):
        log.clear()
        want = function(taeda.ones(3).as_subclass(kind))
        called = list(log)
        log.clear()
        x = taeda.ones(3).as_subclass(kind)
        log.clear()
        same(compiled(x), want)
        assert log[: len(called)] == called
    assert compiled.explain()["graphs"] == 1


def test_a_class_of_its_own_is_another_graph(same):
    compiled = capture(lambda x: (type(x).__name__, x + 1))
    for kind in (taeda.Tensor, Tagged):
        same(compiled(taeda.ones(3).as_subclass(kind))[0], kind.__name__)


def test_overrides_are_asked_for_as_outside():
    def asked(x):
        return taeda.overrides.has_torch_function_unary(x), x + 1

    assert capture(asked)(taeda.ones(2))[0] is False


def test_attributes_that_programs_give_to_tensors():
    def program(p):
        found = getattr(p, "scale", 5), getattr(p, "other", 7)
        p.note = 3
        return p * found[0] * p.note, found

    compiled = capture(program, fullgraph=True)
    for scale in (2, 2, 4):
        p = taeda.ones(2)
        p.scale = scale
        out, found = compiled(p)
        assert p.note == 3 and found == (scale, 7)
        assert taeda.equal(out, taeda.full((2,), 3.0 * scale))
    plain = taeda.ones(2)
    assert compiled(plain)[1] == (5, 7)


def test_parameters_are_made_inside(same):
    def program(x):
        p = taeda.nn.Parameter(x * 2)
        q = taeda.nn.Parameter(p.detach().clone(), requires_grad=False)
        return p * 3, type(p).__name__, p.is_leaf, q, p

    compiled = capture(program, fullgraph=True)
    for _ in range(2):
        x = taeda.ones(2)
        out, want = compiled(x), program(x)
        same(out[:4], want[:4])
        out[0].sum().backward()
        assert taeda.equal(out[4].grad, taeda.full((2,), 3.0))


class Table(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = 1

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Output(OrderedDict):
    """As model outputs of libraries are: items that are attributes too."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Rows(list):
    pass


@dataclass
class Batch:
    x: object
    scale: int = 2


def reads_table(d):
    return d["a"] * 2 + d.a + d.extra, len(d), list(d)


def writes_table(d):
    d["b"] = d["a"] + 1
    d.extra += 1
    return d


def makes_table(d):
    made = Table(a=d["a"])
    made["c"] = made.a * 2
    out = Output()
    out["first"] = made.c
    return made, out, out.first + 1


def counts(d):
    words = Counter("abca")
    words.update("a")
    return d["a"] * words["a"], words, words.most_common(1)


def grows(d):
    rows = Rows([d["a"]])
    rows.append(d["a"] * 2)
    return rows, sum(rows), Batch(rows[0], 3)


def state_of(value):
    if isinstance(value, (dict, list)):
        return [*([*value.items()] if isinstance(value, dict) else value)]
    return value


@pytest.mark.parametrize(
    "function", [reads_table, writes_table, makes_table, counts, grows]
)
def test_classes_derived_from_containers(function, same):
    compiled = capture(function, fullgraph=True)
    for _ in range(2):
        mine, theirs = Table(a=taeda.ones(2)), Table(a=taeda.ones(2))
        out, want = compiled(mine), function(theirs)
        if isinstance(want, tuple):
            for a, b in zip(out, want, strict=True):
                assert type(a) is type(b)
                same(state_of(vars(a) if isinstance(a, Batch) else a),
                     state_of(vars(b) if isinstance(b, Batch) else b))  # fmt: skip
        else:
            assert out is mine
        same([*mine.items()], [*theirs.items()])
        assert mine.extra == theirs.extra


def test_containers_derived_in_a_program_as_inputs(same):
    def program(counter, rows, d):
        rows.append(d["p"] * counter["a"])
        d["q"] = rows[0]
        d.move_to_end("p")
        return sum(rows)

    def arguments():
        x = taeda.ones(2)
        return Counter("aab"), Rows([x]), Output(p=x)

    compiled = capture(program)
    for _ in range(2):
        mine, theirs = arguments(), arguments()
        same(compiled(*mine), program(*theirs))
        same([*mine[1]], [*theirs[1]])
        assert set(mine[2]) == set(theirs[2])


# As text, since pytest writes other code for assertions of its files.
ASSERTS = """
def program(x):
    assert (x > 0).all(), "positive"
    return x + 1
"""


def test_an_assertion_on_a_tensor_is_a_call():
    names = {}
    exec(ASSERTS, names)
    program = names["program"]
    compiled = capture(program, fullgraph=True)
    for _ in range(2):
        assert taeda.equal(compiled(taeda.ones(2)), taeda.full((2,), 2.0))
    with pytest.raises(AssertionError, match="positive"):
        compiled(-taeda.ones(2))


def test_generators_of_random_numbers_end_a_graph(same):
    def program(x):
        generator = taeda.Generator()
        generator.manual_seed(1)
        return x + taeda.rand(3, generator=generator)

    compiled = capture(program)
    for _ in range(2):
        same(compiled(taeda.ones(3)), program(taeda.ones(3)))


def test_hooks_of_saved_tensors_end_a_graph():
    packed = []

    def program(x):
        with taeda.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(1) or t, lambda t: t
        ):
            return x.sin()

    compiled = capture(program)
    for count in (1, 2):
        compiled(taeda.ones(2, requires_grad=True))
        assert len(packed) == count


def test_sizes_layouts_and_memory_formats_are_arguments() -> None:
    def f(x, size, layout, memory_format):
        y = x.view(size).contiguous(memory_format=memory_format)
        return y + taeda.zeros(size, layout=layout), size, size.numel()

    compiled = taeda.compile(f, fullgraph=True, backend="eager")
    for shape in ((2, 3), (3, 2), (2, 3)):
        size = taeda.ones(shape).shape
        args = (taeda.arange(6.0), size, taeda.strided, taeda.contiguous_format)
        found, want = compiled(*args), f(*args)
        assert taeda.equal(found[0], want[0])
        assert found[1:] == want[1:] and type(found[1]) is taeda.Size


class Doubled(taeda.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out * 2 if func is taeda.add else out


@pytest.mark.parametrize("kind", (Tagged, Doubled))
@pytest.mark.parametrize("dynamic", (None, True))
@pytest.mark.parametrize("backend", ("inductor", lambda module, inputs: module))
def test_results_of_graphs_are_of_their_classes(kind, dynamic, backend) -> None:
    def function(x, y):
        return taeda.add(x, y), (x * y).sum(), (y + 1).as_subclass(kind), y * 2

    compiled = taeda.compile(function, dynamic=dynamic, backend=backend)
    given = taeda.arange(3.0).as_subclass(kind), taeda.ones(3)
    for have, want in zip(compiled(*given), function(*given), strict=True):
        assert type(have) is type(want)
        assert have.as_subclass(taeda.Tensor).equal(want.as_subclass(taeda.Tensor))


class Pair(tuple):
    """Its items are not the arguments of its class."""

    def __new__(cls, a, b, scale=2):
        made = super().__new__(cls, (a * scale, b))
        made.scale = scale
        return made

    def __getitem__(self, i):
        return super().__getitem__(i) + self.scale


class Seen(dict):
    def __new__(cls, key):
        return super().__new__(cls)

    def __init__(self, key):
        self[key] = key


def test_containers_whose_classes_have_a_new_of_their_own(same) -> None:
    def made(x):
        return Pair(x, 3), Seen("a"), x + 1

    def through(pair, seen):
        seen["c"] = pair[0] + pair.scale
        return pair, list(pair), len(pair), seen

    def kept(x):
        pair, seen = Pair(x, 3, scale=4), Seen("b")
        x.sum().item()
        return pair[0] * 2, pair, seen, pair.scale

    for function in (made, kept):
        have, want = taeda.compile(function)(X := taeda.ones(2)), function(X)
        same(have, want)
        assert [type(v) for v in have] == [type(v) for v in want]
    compiled = taeda.compile(through, fullgraph=True)
    for scale in (2, 5):
        given = Pair(taeda.ones(2), 1, scale=scale), Seen("d")
        have = compiled(*given)
        same(have, through(Pair(taeda.ones(2), 1, scale=scale), Seen("d")))
        assert have[0] is given[0]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_bsc"])
def test_sparse_tensors_are_no_inputs_of_graphs(layout) -> None:
    """A strided stand-in would say that they are not sparse."""
    block = {"blocksize": (1, 2)} if layout == "sparse_bsc" else {}
    x = taeda.eye(4).to_sparse(layout=getattr(taeda, layout), **block)

    def fn(x, y):
        kind = (x.is_sparse, x.layout is taeda.strided)
        return kind, x @ y, (x * 2).to_dense() + y

    y = taeda.randn(4, 4)
    kind, product, total = fn(x, y)
    for compiled in (taeda.compile(fn), taeda.compile(fn, dynamic=True)):
        found = compiled(x, y)
        assert found[0] == kind
        assert taeda.equal(found[1], product) and taeda.equal(found[2], total)
    with pytest.raises(taeda._dynamo.exc.Unsupported, match="a sparse tensor"):
        taeda.compile(fn, fullgraph=True)(x, y)
