"""Which variables live on behind a break."""

# ruff: noqa: F841

from __future__ import annotations

import gc

import taeda


class Graphs:
    """A backend that counts the results of its graphs."""

    def __init__(self) -> None:
        self.results: list[int] = []

    def __call__(self, graph, inputs):
        (found,) = (n for n in graph.graph.nodes if n.op == "output")
        self.results.append(len(found.args[0]))
        return graph


def results_of(function, *inputs) -> list[int]:
    graphs = Graphs()
    want = function(*inputs)
    got = taeda.compile(function, backend=graphs)(*inputs)
    assert taeda.equal(want, got)
    return graphs.results


def test_what_nothing_reads_is_no_result_of_a_graph():
    def f(x):
        unused = x * 2
        pair = (x * 3, [x * 4, {"a": x * 5}])
        y = x + 1
        print(end="")
        unused = y - 1
        return y + unused

    assert results_of(f, taeda.ones(3)) == [1, 1]


def test_what_some_way_reads_is_a_result():
    def f(x, n):
        a, b, c = x * 2, x * 3, x * 4
        print(end="")
        if n > 1:
            a = x
        else:
            b = x
        return a + b

    assert results_of(f, taeda.ones(3), 2) == [2, 1]


def test_the_next_turn_of_a_loop_reads():
    def f(x):
        carried = x
        for _ in range(3):
            y = x * 2
            print(end="")
            x = carried + 1
            carried = y
        return x

    assert len(results_of(f, taeda.ones(3))) > 1


def test_a_handler_reads():
    def f(x):
        y = x * 2
        z = x * 3
        try:
            print(end="")
            z = taeda.ones(int("no"))
        except ValueError:
            z = z + y
        return z

    assert results_of(f, taeda.ones(3))[0] == 2


def test_a_caller_reads_behind_its_call():
    def inner(x):
        unused = x * 7
        print(end="")
        return x + 1

    def f(x):
        unused, kept = x * 2, x * 3
        return inner(x * 4) + kept

    assert results_of(f, taeda.ones(3)) == [2, 1]


def test_locals_has_all_of_them():
    def f(x):
        unused = x * 2
        print(end="")
        found = locals()
        return found["x"] + found["unused"]

    assert results_of(f, taeda.ones(3))[0] == 1


def test_a_variable_that_is_deleted_later_lives():
    def f(x):
        gone = x * 2
        y = x * 3
        print(end="")
        del gone
        try:
            return gone  # noqa: F821
        except UnboundLocalError:
            return y

    assert results_of(f, taeda.ones(3)) == [2]


def test_variables_of_closures_live():
    def f(x):
        held = x * 2

        def later():
            return held + 1

        print(end="")
        return later()

    assert results_of(f, taeda.ones(3)) == [1, 1]


def test_objects_whose_end_is_seen_end_with_the_function():
    ended = []

    class Seen:
        def __init__(self, value):
            self.value = value

        def __del__(self):
            ended.append(type(self.value).__name__)

    def f(x):
        seen = Seen(x)
        y = x * 2
        print(end="")
        ended.append("before")
        return y

    f(taeda.ones(3))
    want = list(ended)
    ended.clear()
    taeda.compile(f, backend="eager")(taeda.ones(3))
    gc.collect()
    assert ended[-2:] == want == ["before", "Tensor"]


def test_gradients_are_those_of_what_is_read():
    def f(x):
        inverse = (x / x.detach().abs()).sqrt()
        y = x * 3
        if y.sum() > 0:
            y = y + 1
        return y

    x = taeda.tensor([0.0, 1.0], requires_grad=True)
    taeda.compile(f)(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_only_returns_is_no_part():
    kept = {}

    def inner(x):
        loss = (x * 2).sum()
        loss.backward()
        return loss, x.grad, kept

    def f(x):
        return [inner(x), x]

    compiled = taeda.compile(f, backend="eager")
    for _ in range(2):
        x = taeda.ones(3, requires_grad=True)
        (loss, grad, table), given = compiled(x)
        assert loss.item() == 6 and grad.tolist() == [2.0] * 3
        assert table is kept and given is x
    assert len(compiled.explain()["parts"]) == 1
