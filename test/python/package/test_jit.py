"""TorchScript is not there and says so; what eager programs use of it works."""

from __future__ import annotations

import subprocess
import sys
import typing
import warnings

import pytest
import taeda
import torch
from taeda import jit


def double(x):
    return x * 2


def test_a_scripted_function_refuses_its_first_call() -> None:
    scripted = jit.script(double)
    assert isinstance(scripted, jit.ScriptFunction) and scripted.__name__ == "double"
    assert jit.script(scripted) is scripted
    with pytest.raises(NotImplementedError, match=r"jit\.script.*double.*_JIT=0"):
        scripted(taeda.ones(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: jit.script(m),
        lambda m: jit.trace(m, (None,)),
        lambda m: jit.trace(double, (None,)),
        lambda m: jit.trace_module(m, {}),
        lambda m: jit.freeze(m),
        lambda m: jit.optimize_for_inference(m),
        lambda m: jit.save(m, "file.pt"),
        lambda m: jit.load("file.pt"),
        lambda m: jit.ScriptModule(),
        lambda m: jit.RecursiveScriptModule(),
    ],
)
def test_what_needs_torchscript_is_not_implemented(call) -> None:
    with pytest.raises(NotImplementedError, match=r"^jit\.\w+"):
        call(taeda.nn.Linear(1, 1))


def test_without_scripting_code_stays_python() -> None:
    code = """
from taeda import jit, nn
def double(x): return x * 2
class Scripted(jit.ScriptModule):
    @jit.script_method
    def forward(self, x): return x + 1
module = nn.Linear(1, 1)
assert jit.script(double) is double and jit.trace(module, None) is module
assert jit.script(module) is module and jit.trace_module(module, {}) is module
assert Scripted()(1) == 2
"""
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


def environment() -> dict[str, str]:
    import os

    return os.environ | {"PYTORCH_JIT": "0"}


def test_markers_mean_nothing_to_running_code() -> None:
    @jit.ignore(drop=True)
    def ignored(x):
        return x

    assert ignored(1) == 1 and jit.unused(double) is double
    assert jit.export(double) is double and jit.annotate(int, "1") == "1"
    assert not jit.is_scripting() and not jit.is_tracing()
    value = jit.Attribute(3, int)
    assert value.value == 3 and value.type is int


def test_forks_run_at_once() -> None:
    future = jit.fork(double, 4)
    assert isinstance(future, taeda.futures.Future)
    assert future.done() and future.wait() == jit.wait(future) == 8
    assert future.then(lambda f: f.wait() + 1).wait() == 9


VALUES = [
    *(1, True, 1.5, "a", None, [], [1, 2], [1, "a"], [None, 1], [[1], [2]]),
    *([[1], ["a"]],),
    *({}, {"a": 1}, {"a": [1]}, {"a": ["b"]}, {1: 1}, {1}, (), (1,), (1, "a"), (1, 2)),
]
TYPES = """
int; str; float; (int, str); type(None); List[int]; list[int]; List[List[int]]
Dict[str, int]; dict[str, List[int]]; Tuple[int, str]; Tuple[int]; Tuple[()]
Optional[int]; Optional[List[int]]; List[Optional[int]]; Union[int, str]; int | None
List[Union[int, str]]; Set[int]; (List[str], List[int])
list; List; dict; Dict; tuple; Tuple
""".replace("\n", ";").split(";")


def answer(library, value, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return library.jit.isinstance(value, kind)
        except (RuntimeError, TypeError) as error:
            return type(error)


def type_of(text: str):
    return eval(text, dict(vars(typing)))


@pytest.mark.parametrize("text", [t.strip() for t in TYPES if t.strip()])
def test_isinstance_looks_into_containers(text) -> None:
    kind = type_of(text)
    # PyTorch takes None for a member of every Union.
    union = "Union" in text
    values = [v for v in VALUES if not (union and v in (None, [None, 1]))]
    ours = [answer(taeda, value, kind) for value in values]
    assert ours == [answer(torch, value, kind) for value in values]


def test_none_is_not_of_every_union() -> None:
    assert not jit.isinstance(None, int | str)
    assert not jit.isinstance([None, 1], list[int | str])


def test_a_scripted_class_is_the_class() -> None:
    class Pair:
        pass

    assert jit.script(Pair) is Pair


def test_isinstance_of_tensors() -> None:
    x = taeda.ones(1)
    assert jit.isinstance([x], list[taeda.Tensor])
    assert jit.isinstance({"a": x}, dict[str, taeda.Tensor])
    assert not jit.isinstance({"a": 1}, dict[str, taeda.Tensor])
    with pytest.warns(UserWarning, match="empty container"):
        assert jit.isinstance([], list[taeda.Tensor])
