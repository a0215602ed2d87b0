"""The compiler's controls do what PyTorch's do, and say what a person wants to know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda._dynamo.exc import FailOnRecompileLimitHit, Unsupported
from taeda._logging import set_logs

from test.python.compile import control_programs

PROGRAMS = {program.__name__: program for program in control_programs.PROGRAMS}


@pytest.fixture(scope="module")
def theirs() -> dict:
    """What the programs return under PyTorch."""
    shown = subprocess.run(
        [sys.executable, control_programs.__file__, "torch"],
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(shown.stdout.splitlines()[-1])


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is left of the programs."""
    yield
    set_logs()
    taeda._dynamo.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name, theirs) -> None:
    assert json.loads(json.dumps(PROGRAMS[name](taeda))) == theirs[name]


def broken(x):
    x = x + 1
    taeda._dynamo.graph_break()
    return x * 2


def test_a_refusal_names_reason_file_and_line() -> None:
    with pytest.raises(Unsupported) as refused:
        taeda.compile(broken, fullgraph=True)(taeda.ones(1))
    text, line = str(refused.value), broken.__code__.co_firstlineno + 2
    assert "graph_break" in text.splitlines()[0]
    assert f'File "{Path(__file__)}", line {line}, in broken' in text
    assert text.splitlines()[-1].strip() == "taeda._dynamo.graph_break()"


def test_a_refusal_says_what_to_do() -> None:
    def branches(x):
        return x + 1 if x.sum() > 0 else x

    with pytest.raises(Unsupported, match=r"Hint: Data-dependent branching: use taeda"):
        taeda.compile(branches, fullgraph=True)(taeda.ones(1))


def test_a_property_that_guards_read_may_call_the_function_again() -> None:
    class Held:
        depth = 0

        @property
        def k(self):
            if Held.depth == 0:
                Held.depth = 1
                try:
                    return int(compiled(taeda.ones(1), self).item()) + 1
                finally:
                    Held.depth = 0
            return 1

    def function(x, held):
        return x * held.k

    compiled = taeda.compile(function, backend="eager")
    for _ in range(4):
        assert compiled(taeda.ones(1), Held()).tolist() == [2]


def test_a_refusal_shows_the_callers_too() -> None:
    def caller(x):
        return broken(x) + 1

    with pytest.raises(
        Unsupported, match=r"in .*caller\n.*broken\(x\)(.|\n)*in broken"
    ):
        taeda.compile(caller, fullgraph=True)(taeda.ones(1))


def test_a_disabled_functions_reason_is_said() -> None:
    @taeda.compiler.disable(reason="it counts")
    def helper(x):
        return x

    def fn(x):
        return helper(x) + 1

    with pytest.raises(Unsupported, match="helper, which compiler.disable.*it counts"):
        taeda.compile(fn, fullgraph=True)(taeda.ones(1))


def test_logs_of_breaks_and_recompiles(caplog) -> None:
    set_logs(graph_breaks=True, recompiles=True)
    compiled = taeda.compile(broken, backend="eager")
    compiled(taeda.ones(2))
    (record,) = caplog.records
    assert record.name == "taeda.compiler.graph_breaks"
    assert "Graph break in broken" in record.message
    assert "taeda._dynamo.graph_break()" in record.message
    caplog.clear()
    with_length = taeda.compile(lambda x, s: x + len(s), backend="eager")
    with_length(taeda.ones(2), "a")
    with_length(taeda.ones(2), "bb")
    assert "L['s'] == 'a', now 'bb'" in caplog.text
    caplog.clear()
    set_logs()
    taeda.compile(broken, backend="eager")(taeda.ones(2))
    assert not caplog.records


def test_logs_of_graphs_and_guards(caplog) -> None:
    set_logs(graph=True, graph_code=True, guards=True)
    taeda.compile(lambda x: x.sin() * 2)(taeda.ones(2))
    text = {r.name.split(".")[-1]: r.message for r in caplog.records}
    assert set(text) == {"graph", "graph_code", "guards"}
    assert "sin" in text["graph"] and "placeholder[target=L_x_]" in text["graph"]
    assert "def forward(self, L_x_ : taeda.Tensor)" in text["graph_code"]
    assert "L['x'] is float32[2], strides [1], requires_grad False" in text["guards"]


@pytest.mark.parametrize("variable", ["TAEDA_LOGS", "TORCH_LOGS"])
def test_logs_by_the_environment(variable) -> None:
    program = (
        "import taeda\n"
        "def fn(x):\n    taeda._dynamo.graph_break()\n    return x + 1\n"
        "taeda.compile(fn)(taeda.ones(1))\n"
    )
    import os

    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, variable: "graph_breaks"},
    )
    assert "[taeda.compiler.graph_breaks] Graph break in fn" in shown.stderr


def test_unknown_names_of_logs() -> None:
    with pytest.raises(ValueError, match="unknown name 'nonsense'"):
        set_logs(nonsense=True)


def test_the_limit_is_warned_of_once(caplog) -> None:
    compiled = taeda.compile(lambda x, s: x + len(s), backend="eager")
    with taeda._dynamo.config.patch(recompile_limit=2):
        for n in range(5):
            assert compiled(taeda.ones(1), "x" * n).tolist() == [1 + n]
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "captured 2 times" in record.message


def test_the_limit_as_an_error() -> None:
    compiled = taeda.compile(lambda x, s: x + len(s), backend="eager")
    config = taeda._dynamo.config
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        compiled(taeda.ones(1), "a")
        with pytest.raises(FailOnRecompileLimitHit, match="recompile_limit 1 is reach"):
            compiled(taeda.ones(1), "bb")


def test_settings_with_one_value_are_warned_of() -> None:
    config = taeda._dynamo.config
    with pytest.warns(UserWarning, match="guard_nn_modules is always True here"):
        config.guard_nn_modules = False
    assert config.guard_nn_modules is True
    with pytest.raises(TypeError, match="recompile_limit: expected int, got 'many'"):
        config.recompile_limit = "many"


def test_the_whole_compiler_is_switched_off() -> None:
    backend = control_programs.Backend()
    compiled = taeda.compile(lambda x: x + 1, backend=backend)
    with taeda._dynamo.config.patch(disable=True):
        compiled(taeda.ones(1))
    assert backend.counts == [0, 0]
    compiled(taeda.ones(1))
    assert backend.counts == [1, 1]


def test_a_call_of_containers_in_a_graph() -> None:
    @taeda._dynamo.nonstrict_trace
    def scaled(parts, k):
        return {"first": parts[0] * k, "all": [p + 1 for p in parts]}

    def fn(x):
        out = scaled([x, x * 2], 3)
        return out["first"] + out["all"][1]

    x, backend = taeda.ones(2), control_programs.Backend()
    assert taeda.compile(fn, backend=backend, fullgraph=True)(x).tolist() == [6, 6]
    targets = [n.target for n in backend.modules[0].graph.nodes]
    assert scaled in targets and backend.counts == [1, 1]


def test_no_array_but_tensors() -> None:
    import numpy

    summed = taeda.compiler.wrap_numpy(lambda a: {"s": numpy.sum(a, axis=0)})
    assert summed(taeda.ones(3, 2))["s"].tolist() == [3, 3]
