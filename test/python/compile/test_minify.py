"""Graphs that compiled code computes otherwise, made small and written down."""

import subprocess
import sys

import pytest
import taeda
from taeda._functorch.fx_minifier import minifier
from taeda.compiler import _default

# Runs a script while all compiled graphs are off by one.
FAULTY = """
import runpy, sys
from taeda.compiler import _default
real = _default.compile_function
def wrong(*given, **settings):
    made = real(*given, **settings)
    return lambda *inputs: tuple(r + 1 for r in made(*inputs))
_default.compile_function = wrong
runpy.run_path(sys.argv[1])
"""


def program(x, y):
    a = (x + y).relu() @ y
    b, c = a.sin().split(2)
    return (b * c + 1).softmax(-1) * 2, a.sum()


def calls(gm) -> list[str]:
    return [str(n.target) for n in gm.graph.nodes if n.op.startswith("call")]


@pytest.mark.parametrize("wanted", [["softmax"], ["sin", "softmax"], ["relu"]])
def test_what_does_not_matter_is_left_out(wanted) -> None:
    def fails(gm, inputs):
        gm(*inputs)  # it is a graph, and the inputs are those that it takes
        return set(wanted) <= set(calls(gm))

    gm = taeda.fx.symbolic_trace(program)
    told = []
    small, inputs = minifier(
        gm, [taeda.randn(4, 4), taeda.randn(4, 4)], fails, lambda *s: told.append(s)
    )
    assert told == [(small, inputs)]
    needed = {"softmax": 1, "relu": 1, "sin": 6}[wanted[0]]
    assert len(calls(small)) <= needed and set(wanted) <= set(calls(small))


def test_inputs_are_what_the_calls_left_out_gave() -> None:
    x, y = taeda.randn(4, 4), taeda.randn(4, 4)
    gm = taeda.fx.symbolic_trace(program)
    small, inputs = minifier(
        gm, [x, y], lambda gm, _: "softmax" in calls(gm), lambda *state: None
    )
    (result,) = small(*inputs)
    assert taeda.equal(result, program(x, y)[0] / 2)


def test_a_graph_that_does_not_fail_is_refused() -> None:
    gm = taeda.fx.symbolic_trace(program)
    with pytest.raises(RuntimeError, match="did not fail"):
        minifier(gm, [taeda.ones(4, 4)] * 2, lambda *part: False)


def test_a_right_program_writes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TAEDA_MINIFY", str(tmp_path / "found"))
    x, y = taeda.randn(4, 4, requires_grad=True), taeda.randn(4, 4)
    taeda.compile(program)(x, y)[0].sum().backward()
    assert not (tmp_path / "found").exists()


def test_a_difference_becomes_a_script(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("TAEDA_MINIFY", str(tmp_path))
    real = _default.compile_function

    def wrong(function, inputs, **settings):
        made = real(function, inputs, **settings)
        owner = getattr(function, "__self__", None)
        if owner is None or "softmax" not in owner.code:
            return made
        return lambda *given: tuple(r + 1 for r in made(*given))

    monkeypatch.setattr(_default, "compile_function", wrong)
    x, y = taeda.randn(4, 4, requires_grad=True), taeda.randn(4, 4)
    taeda.compile(program)(x, y)
    (script,) = tmp_path.glob("graph_*/repro.py")
    assert str(script) in caplog.text
    text = (script.parent / "graph" / "module.py").read_text()
    assert "softmax" in text and "relu" not in text and "sin(" not in text
    run = [sys.executable, str(script)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "no difference\n"
    run = [sys.executable, "-c", FAULTY, str(script)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 1 and "differs" in done.stdout
