"""Sizes and numbers that differ from call to call: graphs, guards and results, held to
PyTorch's number of graphs and to programs that run as they are written."""

from __future__ import annotations

import json

import dynamic_programs as programs
import pytest
import taeda
from both_libraries import told_by
from taeda.fx.experimental.symbolic_shapes import ConstraintViolationError


@pytest.fixture(scope="module")
def reference() -> dict:
    """What the programs do in PyTorch."""
    return told_by(programs)


def _close(a, b) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float):
        return abs(a - b) <= 1e-5 * max(1.0, abs(a))
    return a == b


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_graphs_and_results_are_pytorchs(reference, name) -> None:
    have = json.loads(json.dumps(programs.run(taeda, name)))
    want = reference[name]
    assert [count for count, _ in have] == [count for count, _ in want]
    for (_, ours), (_, theirs) in zip(have, want, strict=True):
        assert _close(theirs, ours), (theirs, ours)


class Backend:
    """Keeps the graphs and runs them."""

    def __init__(self) -> None:
        self.graphs, self.inputs = [], []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        self.inputs.append(inputs)
        return gm.forward


def _compiled(function, **settings):
    backend = Backend()
    return taeda.compile(function, backend=backend, **settings), backend


def _rows(*counts):
    return [taeda.arange(n * 3.0).reshape(n, 3) for n in counts]


def test_symbols_are_inputs_before_the_tensors_that_have_them() -> None:
    def f(x, k):
        return x * x.shape[0] + k, x.shape[0] * 2 + 1

    compiled, backend = _compiled(f)
    for x, k in zip(_rows(4, 5, 6), (3, 4, 5), strict=True):
        out, size = compiled(x, k)
        assert out.tolist() == (x * x.shape[0] + k).tolist()
        assert type(size) is int and size == x.shape[0] * 2 + 1
    assert len(backend.graphs) == 2
    nodes = backend.graphs[1].graph.nodes
    names = [n.target for n in nodes if n.op == "placeholder"]
    assert names == ["s0", "L_x_", "L_k_"]
    kinds = [type(i) for i in backend.inputs[1]]
    assert kinds == [taeda.SymInt, taeda.Tensor, taeda.SymInt]
    symbol = next(n for n in nodes if n.target == "s0")
    assert repr(symbol.meta["example_value"]) == "s0"


def test_the_graph_without_a_backend_works_sizes_out_again() -> None:
    def f(x, y):
        both = taeda.cat([x, y])
        half = both.shape[0] // 2
        return both[:half] * half, both.view(-1, 3, 1).sum(1), both.shape

    compiled = taeda.compile(f)
    for a, b in ((2, 3), (4, 5), (6, 3), (3, 9)):
        x, y = _rows(a)[0], _rows(b)[0] + 1
        for have, want in zip(compiled(x, y), f(x, y), strict=True):
            assert type(have) is type(want)
            same = have == want
            assert same if isinstance(same, bool) else same.all()
    assert compiled.explain()["graphs"] == 2


def test_a_decision_is_a_guard_that_names_its_line() -> None:
    def f(x):
        if x.shape[0] > 6:
            return x + 1
        return x - 1

    compiled = taeda.compile(f, dynamic=True)
    (x,) = _rows(4)
    compiled(x)
    (part,) = compiled.explain()["parts"]
    (guard,) = part["sizes"]
    line = f.__code__.co_firstlineno + 1
    assert guard == f"s0 <= 6  # {__file__}:{line}"
    compiled(_rows(5)[0])
    assert compiled.explain()["graphs"] == 1
    assert compiled(_rows(8)[0]).tolist() == (_rows(8)[0] + 1).tolist()
    assert compiled.explain()["graphs"] == 2


def test_a_number_that_is_used_as_a_value_is_fixed() -> None:
    def f(x, k):
        return x + 1, f"{k} {k!r} {str(k)}", {2: "two"}.get(k, "other")

    compiled = taeda.compile(f)
    x = taeda.ones(2)
    for k in (2, 3, 4, 3):
        assert compiled(x, k)[1:] == f(x, k)[1:]


def test_results_do_not_depend_on_what_stays_between_parts() -> None:
    def f(x, k):
        y = x * k + x.shape[0]
        print(end="")
        return y * k + y.shape[0]

    compiled = taeda.compile(f)
    for n, k in ((4, 2), (5, 3), (6, 4), (7, 5)):
        (x,) = _rows(n)
        assert compiled(x, k).tolist() == f(x, k).tolist()


def test_side_effects_hold_plain_numbers() -> None:
    class Box:
        pass

    box, seen = Box(), []

    def f(x):
        box.rows = x.shape[0]
        seen.append(x.shape[0] * 2)
        return x + 1

    compiled = taeda.compile(f)
    for n in (4, 5, 6):
        compiled(_rows(n)[0])
        assert type(box.rows) is int and box.rows == n
    assert seen == [8, 10, 12] and all(type(v) is int for v in seen)


def test_gradients_at_other_sizes() -> None:
    lin = taeda.nn.Linear(3, 2)

    def f(x):
        return (lin(x).relu() * x.shape[0]).sum()

    compiled = taeda.compile(f)
    for x in _rows(4, 5, 6):
        lin.weight.grad = None
        compiled(x).backward()
        grad, lin.weight.grad = lin.weight.grad, None
        f(x).backward()
        assert taeda.allclose(grad, lin.weight.grad)
    assert compiled.explain()["graphs"] == 2


def test_a_marked_size_that_is_fixed_is_an_error() -> None:
    compiled = taeda.compile(lambda x: x + 1 if x.shape[0] == 4 else x - 1)
    (x,) = _rows(4)
    taeda._dynamo.mark_dynamic(x, 0)
    with pytest.raises(ConstraintViolationError) as caught:
        compiled(x)
    text = str(caught.value)
    assert text.startswith("Constraints violated (L['x'].size()[0])!")
    assert (
        "You marked L['x'].size()[0] as dynamic but your code specialized it to be "
        "a constant (4)." in text
    )


def test_a_marked_range_is_checked() -> None:
    def f(x):
        return x + 1 if x.shape[0] > 2 else x - 1

    compiled = taeda.compile(f)
    (x,) = _rows(4)
    taeda._dynamo.mark_dynamic(x, 0, min=2, max=10)
    with pytest.raises(ConstraintViolationError, match="Not all values"):
        compiled(x)
    compiled, backend = _compiled(lambda x: x + 1)
    compiled(x)
    compiled(_rows(10)[0])
    assert len(backend.graphs) == 1
    compiled(_rows(11)[0])
    assert len(backend.graphs) == 2


def test_a_mark_that_the_graph_was_not_made_for_is_seen() -> None:
    compiled, backend = _compiled(lambda x: x + 1)
    x, y = _rows(4, 4)
    compiled(x)
    taeda._dynamo.mark_dynamic(y, 0)
    compiled(y)
    assert len(backend.graphs) == 2
    compiled(_rows(7)[0])
    assert len(backend.graphs) == 2


def test_guards_of_a_model_are_quick(optimized) -> None:
    """50 conditions on sizes cost at most a microsecond more than none."""

    def f(*xs):
        return sum(x.sum() for x in xs)

    def conditions(*xs):
        for x in xs:
            for n in range(10, 20):
                if x.shape[0] == n + 20:
                    raise ValueError
        return f(*xs)

    times = []
    xs = tuple(_rows(4, 5, 6, 7, 8))
    for function in (f, conditions):
        compiled = taeda.compile(function, dynamic=True)
        compiled(*xs)
        times.append(min(compiled.time_guards(xs, 2000) for _ in range(5)))
    assert len(compiled.explain()["parts"][0]["sizes"]) == 50
    assert times[1] - times[0] < 1e-6


@pytest.mark.parametrize("backend", [None, Backend()])
def test_numbers_from_data_are_part_of_one_graph(backend) -> None:
    def f(x, n):
        k = n.sum().item()
        return x * k + x.sum().item(), k, k * 2 + 1

    settings = {} if backend is None else {"backend": backend}
    compiled = taeda.compile(f, fullgraph=True, **settings)
    for values in ((1, 2), (4, 0), (7, -9)):
        x, n = _rows(2)[0], taeda.tensor(values)
        out, k, more = compiled(x, n)
        want = f(x, n)
        assert out.tolist() == want[0].tolist()
        assert (type(k), k, more) == (int, *want[1:])
    assert compiled.explain()["graphs"] == 1


def test_slices_of_sizes_in_a_graph_with_a_write() -> None:
    def f(x):
        y = x.view(x.shape[-1:])
        x.mul_(2)
        return y + 1

    compiled = taeda.compile(f, backend="eager", dynamic=True)
    for length in (7, 9):
        assert compiled(taeda.ones(length)).tolist() == [3.0] * length


def test_a_size_shares_a_symbol_that_is_known_as_another_ones_sum() -> None:
    def f(x, y):
        return y + 1 if x.shape[1] + 1 == x.shape[0] else y - 1

    compiled = taeda.compile(f, dynamic=True)
    for shape in ((4, 3), (4, 3), (6, 5), (5, 5), (9, 8)):
        x, y = taeda.zeros(shape), taeda.zeros(shape)
        assert compiled(x, y).equal(f(x, y))
        wider = taeda.zeros(shape[0], shape[1] + 1)
        assert compiled(x, wider).equal(f(x, wider))
