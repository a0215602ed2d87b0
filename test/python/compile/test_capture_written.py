"""Graphs say what the program wrote, and functions made anew are no other functions."""

from __future__ import annotations

import gc
import weakref

import pytest
import taeda
import written_programs
from both_libraries import told_by

NAMED = [f.__name__ for f in written_programs.OPERATORS] + ["functions", "modules"]
ANEW = "lambdas tensors numbers counters mapped broken partial returned".split()
ANEW += ["compiled_in_a_function"]


@pytest.fixture(scope="module")
def theirs() -> dict:
    """What the programs tell under PyTorch."""
    return told_by(written_programs)


@pytest.fixture(scope="module")
def ours() -> dict:
    """What they tell here."""
    return written_programs.found_by(taeda)


@pytest.mark.parametrize("name", NAMED)
def test_graphs(name, ours, theirs):
    assert ours["named"][name] == theirs["named"][name]


@pytest.mark.parametrize("name", ANEW)
def test_functions_made_anew(name, ours, theirs):
    assert ours["anew"][name] == theirs["anew"][name]


def counted(function):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    return taeda.compile(function, backend=backend), graphs


def test_tensors_of_defaults_are_named_after_their_function():
    run, helper = written_programs.helper_with_defaults(taeda)
    compiled, graphs = counted(run)
    compiled(taeda.ones(3, 4), helper)
    names = [n.name for n in graphs[0].graph.nodes if n.op == "placeholder"]
    assert names == ["l_helper_defaults_0_", "l_helper_kwdefaults_v_", "l_x_"]


def make():
    return lambda y: y


def test_code_that_tells_functions_apart_is_captured_for_each():
    x, f, g = taeda.zeros(2), make(), make()

    def same(x, a, b):
        return x + 1 if a is b else x + 2

    def looked_up(x, table, a):
        return x + table[a]

    def place(x, a, among):
        return x + among.index(a) if a in among else x - 1

    compiled, _ = counted(same)
    assert [compiled(x, *p)[0].item() for p in ((f, g), (f, f), (g, g))] == [2, 1, 1]
    compiled, _ = counted(looked_up)
    table = {f: 3.0, g: 4.0}
    assert [compiled(x, table, a)[0].item() for a in (f, g, f)] == [3, 4, 3]
    compiled, _ = counted(place)
    found = [compiled(x, a, [f, g])[0].item() for a in (f, g, make())]
    assert found == [0, 1, -1]


def test_a_function_with_other_globals_is_another_one():
    import types

    code = (lambda y: y + amount).__code__  # noqa: F821
    compiled, _ = counted(written_programs.applied)
    x = taeda.zeros(1)
    functions = [types.FunctionType(code, {"amount": k}) for k in (1.0, 2.0)]
    assert [compiled(x, f).item() for f in functions] == [1, 2]


def test_cells_that_two_functions_share():
    def pair():
        n = taeda.zeros(2)

        def add(y):
            nonlocal n
            n = n + 1
            return y + n

        return add, lambda y: y * n

    compiled, graphs = counted(lambda x, f, g: g(f(x)))
    x = taeda.ones(2)
    assert [compiled(x, *pair())[0].item() for _ in range(3)] == [2.0, 2.0, 2.0]
    assert len(graphs) == 1


class Held:
    pass


def test_what_is_shared_keeps_no_closure_alive():
    def step(held):
        @taeda.compile(backend="eager")
        def inner(x):
            y = x + 1
            taeda._dynamo.graph_break()
            return y * held.factor

        return inner(taeda.ones(2))[0].item()

    held = Held()
    held.factor = 3
    assert step(held) == 6
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None


def test_recompiles_are_isolated_where_that_is_asked():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    def step(isolate):
        def inner(x):
            return x * 2

        return taeda.compile(inner, backend=backend, isolate_recompiles=isolate)

    for isolate in (False, False, True, True):
        step(isolate)(taeda.ones(2))
    assert len(graphs) == 3


def test_functions_of_one_code_have_each_their_captures():
    def step(operator):
        return taeda.compile(
            lambda x: operator(x), backend="eager", recompile_limit=2, fullgraph=True
        )(taeda.ones(2))

    for name in "sin cos tan exp log".split():
        operator = getattr(taeda, name)
        assert step(operator).equal(operator(taeda.ones(2)))


def test_a_mode_of_the_program_is_asked_about_methods():
    from taeda.overrides import TorchFunctionMode

    names = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    def run(x):
        with Mode():
            return x * 2

    taeda.compile(run, backend="eager")(taeda.ones(2))
    assert "mul" in names
