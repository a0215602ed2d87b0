"""`compile` runs by hand what it is told to run by hand, and refuses the rest."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import pytest
import taeda
from taeda._dynamo import OptimizedModule


def double(x):
    """Twice."""
    return x * 2


def test_the_backend_eager_runs_a_function_as_it_is_written() -> None:
    compiled = taeda.compile(double, backend="eager")
    assert compiled is not double and compiled.__doc__ == "Twice."
    assert compiled._torchdynamo_orig_callable is double
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    decorated = taeda.compile(backend="eager", dynamic=True)(double)
    assert decorated(3) == 6


def test_the_backend_eager_wraps_a_module() -> None:
    held = taeda.nn.Linear(2, 3)
    compiled = taeda.compile(held, backend="eager")
    assert isinstance(compiled, OptimizedModule) and compiled._orig_mod is held
    x = taeda.ones(2)
    assert taeda.equal(compiled(x), held(x))
    compiled.eval()
    assert not held.training and not compiled.training
    compiled.note = 5
    assert held.note == 5 and compiled.in_features == 2
    del compiled.note
    assert not hasattr(held, "note")
    for again in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert again._orig_mod is not held and taeda.equal(again(x), held(x))
    assert taeda.compile(held, backend="eager", disable=True) is held


def test_a_module_compiled_in_place() -> None:
    module = taeda.nn.Linear(2, 2)
    module.compile(backend="eager")
    assert module(taeda.ones(2)).shape == (2,)
    with pytest.raises(NotImplementedError, match="compile: backend 'inductor'"):
        module.compile()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"backend": "inductor"},
        {"backend": "aot_eager"},
        {"backend": "cudagraphs"},
        {"backend": lambda graph, inputs: graph},
        {"mode": "max-autotune"},
        {"options": {"max_autotune": True}},
        {"backend": "eager", "fullgraph": True},
    ],
)
def test_what_is_not_there_is_not_implemented(options) -> None:
    with pytest.raises(NotImplementedError, match="^compile: "):
        taeda.compile(double, **options)
    with pytest.raises(NotImplementedError, match="^compile: "):
        taeda.compile(**options)(double)


WRONG = [
    {"backend": "no_such"},
    {"mode": "no-such"},
    {"options": {"no_such": 1}},
    {"mode": "default", "options": {}},
    {"dynamic": "yes", "backend": "eager"},
]
# In a process of its own, for PyTorch's compiler changes settings of the whole library
# when it is imported.
REFERENCE = """
import json, sys, torch
def refused(options):
    try:
        torch.compile(print, **options)
    except Exception as error:
        return type(error).__name__
module = torch.compile(torch.nn.Linear(2, 3), backend="eager")
found = [refused(options) for options in json.loads(sys.argv[1])]
print(json.dumps([found, list(module.state_dict()), repr(module)]))
"""


@pytest.fixture(scope="module")
def reference() -> list:
    """What PyTorch refuses WRONG with; names and text of a compiled module."""
    shown = subprocess.run(
        [sys.executable, "-c", REFERENCE, json.dumps(WRONG)],
        capture_output=True,
        check=True,
    )
    return json.loads(shown.stdout)


def test_what_pytorch_refuses_is_refused(reference) -> None:
    for options, theirs in zip(WRONG, reference[0], strict=True):
        with pytest.raises((RuntimeError, AssertionError)) as ours:
            taeda.compile(double, **options)
        # NotImplementedError is a RuntimeError; the compiler's errors have our classes.
        assert theirs in {kind.__name__ for kind in type(ours.value).__mro__}


def test_a_compiled_module_looks_as_pytorchs(reference) -> None:
    compiled = taeda.compile(taeda.nn.Linear(2, 3), backend="eager")
    assert [list(compiled.state_dict()), repr(compiled)] == reference[1:]


def test_eager_says_that_it_ignores_the_compilers_options() -> None:
    with pytest.warns(UserWarning, match="backend 'eager' ignores.*max-autotune"):
        taeda.compile(double, backend="eager", mode="max-autotune")


@pytest.mark.parametrize("name", ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"])
def test_the_environment_leaves_programs_as_they_are(name, monkeypatch) -> None:
    monkeypatch.setenv(name, "1")
    assert taeda.compile(double) is double


def test_controls_of_the_compiler() -> None:
    assert taeda.compiler.list_backends() == []
    assert taeda.compiler.list_backends(None) == ["eager"]
    assert taeda.compiler.disable(double) is double
    with pytest.raises(AssertionError):
        taeda.compiler.disable(3)
    with pytest.raises(AssertionError):
        taeda.compiler.allow_in_graph(3)
