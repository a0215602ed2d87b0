"""`taeda.compile`: what it takes and refuses, what backends get, compiled modules."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import pytest
import taeda
from taeda import nn
from taeda._dynamo import OptimizedModule
from taeda._dynamo.exc import BackendCompilerFailed, TorchDynamoException
from taeda._dynamo.testing import CompileCounter


def double(x):
    """Twice."""
    return x * 2


class Counting:
    """A backend that keeps what it is given."""

    def __init__(self) -> None:
        self.modules, self.inputs, self.settings = [], [], []

    def __call__(self, gm, inputs, **settings):
        self.modules.append(gm)
        self.inputs.append(inputs)
        self.settings.append(settings)
        return gm.forward


def test_a_function_keeps_its_name_and_text() -> None:
    compiled = taeda.compile(double, backend="eager")
    assert compiled is not double and compiled.__doc__ == "Twice."
    assert compiled._torchdynamo_orig_callable is double
    assert compiled.__wrapped__ is double
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
    decorated = taeda.compile(backend="eager", dynamic=True)(double)
    assert decorated(3) == 6


def test_a_backend_gets_the_graph_and_the_inputs_that_it_reads() -> None:
    class Net(taeda.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = taeda.nn.Linear(2, 3)

        def forward(self, x, unused, k):
            return self.lin(x) * k

    net, backend = Net(), Counting()
    compiled = taeda.compile(net.forward, backend=backend)
    x = taeda.ones(4, 2)
    assert taeda.equal(compiled(x, taeda.ones(9), 3), net(x, None, 3))
    (gm,), (inputs,) = backend.modules, backend.inputs
    names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    found = dict(zip(names, inputs, strict=True))
    assert found["l_x_"] is x
    assert found["l_self_modules_lin_parameters_weight_"] is net.lin.weight
    assert len(found) == 3
    assert type(gm(*inputs)) is tuple and "linear" in gm.code


def test_what_a_backend_returns_is_what_runs() -> None:
    def lies(gm, inputs):
        return lambda x: (taeda.full_like(x, 42),)

    assert taeda.compile(double, backend=lies)(taeda.ones(2)).tolist() == [42, 42]


def test_mode_and_options_reach_a_backend() -> None:
    backend = Counting()
    for extra in ({"mode": "max-autotune"}, {"options": {"level": 3}}, {}):
        taeda.compile(double, backend=backend, **extra)(taeda.ones(2))
    taeda.compile(double, backend=backend, mode="default")(taeda.ones(2))
    assert backend.settings == [
        {"mode": "max-autotune"},
        {"options": {"level": 3}},
        {},
        {},
    ]


def test_what_a_backend_raises_comes_with_its_name() -> None:
    def broken(gm, inputs):
        raise ValueError("no such luck")

    with pytest.raises(BackendCompilerFailed, match="backend='broken' raised:\nV") as e:
        taeda.compile(double, backend=broken)(taeda.ones(2))
    assert isinstance(e.value.__cause__, ValueError)


@taeda.compile
def halved(x):
    return x / 2


class Holder(taeda.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = taeda.nn.Linear(2, 2)
        self.function, self.method = halved, taeda.compile(self.doubled)

    def doubled(self, x):
        return self.lin(x) * 2

    def forward(self, x):
        return self.function(self.method(x))


def test_what_holds_compiled_functions_is_copied_and_saved() -> None:
    assert copy.deepcopy(halved) is copy.copy(halved) is halved
    assert pickle.loads(pickle.dumps(halved)) is halved
    held, x = Holder(), taeda.ones(2)
    copied = copy.deepcopy(held)
    assert copied.method.__self__ is copied and copied.function is halved
    with taeda.no_grad():
        held.lin.weight.zero_()
    assert not taeda.equal(copied(x), held(x))


def test_methods_instances_and_other_callables() -> None:
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

        @taeda.compile
        def decorated(self, x):
            return x + self.k

    scale, x = Scale(3), taeda.ones(2)
    assert taeda.compile(scale)(x).tolist() == [3, 3]
    assert taeda.compile(scale.__call__)(x).tolist() == [3, 3]
    assert scale.decorated(x).tolist() == [4, 4]
    backend = Counting()
    gelu = taeda.compile(taeda.nn.functional.gelu, backend=backend)
    assert taeda.equal(gelu(x), taeda.nn.functional.gelu(x))
    twice = taeda.compile(gelu, backend=backend)
    assert twice._torchdynamo_orig_callable is taeda.nn.functional.gelu
    assert len(backend.modules) == 1


def test_a_compiled_module_holds_the_module() -> None:
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
    module, backend = taeda.nn.Linear(2, 2), Counting()
    module.compile(backend=backend)
    assert module(taeda.ones(2)).shape == (2,)
    assert len(backend.modules) == 1
    copied = copy.deepcopy(module)
    assert taeda.equal(copied(taeda.ones(2)), module(taeda.ones(2)))


@pytest.mark.parametrize("backend", ["cudagraphs", "tvm"])
def test_what_is_not_there_is_not_implemented(backend) -> None:
    with pytest.raises(NotImplementedError, match="^compile: backend"):
        taeda.compile(double, backend=backend)


WRONG = [
    {"backend": "no_such"},
    {"mode": "no-such"},
    {"options": {"no_such": 1}},
    {"options": {"max_autotune": "yes"}},
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


def test_backends_have_names() -> None:
    assert taeda.compiler.list_backends() == ["inductor"]
    assert {"eager", "inductor"} < set(taeda.compiler.list_backends(None))

    @taeda._dynamo.register_backend(name="of_this_test", tags=("debug",))
    def function(gm, inputs):
        return gm.forward

    assert "of_this_test" in taeda._dynamo.list_backends(())
    assert "of_this_test" not in taeda._dynamo.list_backends()
    assert taeda._dynamo.lookup_backend("of_this_test") is function
    with pytest.raises(AssertionError, match="duplicate name: of_this_test"):
        taeda._dynamo.register_backend(function, name="of_this_test")


def test_controls_of_the_compiler() -> None:
    with pytest.raises(AssertionError):
        taeda.compiler.disable(3)
    with pytest.raises(AssertionError):
        taeda.compiler.allow_in_graph(3)


def test_backends_for_debugging_give_gradients_too() -> None:
    def f(x):
        return (x.exp() * 2).sigmoid().sum()

    for backend in ("aot_eager_decomp_partition", "aot_eager_default_partitioner"):
        x = taeda.randn(5, requires_grad=True)
        taeda.compile(f, backend=backend)(x).backward()
        y = x.detach().requires_grad_()
        f(y).backward()
        taeda.testing.assert_close(x.grad, y.grad)


def test_a_graph_that_must_not_raise() -> None:
    compiled = taeda.compile(lambda x, i: x[i], backend="eager_noexcept")
    assert compiled(taeda.ones(3), taeda.tensor([1])).tolist() == [1.0]
    with pytest.raises(TorchDynamoException, match="Unexpected exception") as raised:
        compiled(taeda.ones(3), taeda.tensor([7]))
    assert isinstance(raised.value.__cause__, IndexError)


def test_a_compiled_module_takes_another_module() -> None:
    compiled = taeda.compile(taeda.nn.Linear(2, 3), backend="eager")
    compiled._orig_mod = other = taeda.nn.Linear(2, 4)
    assert compiled._orig_mod is other and [*compiled._modules] == ["_orig_mod"]
    assert taeda.equal(compiled(taeda.ones(2)), other(taeda.ones(2)))


def shifted(x=None, *, other=None):
    return x.add_(1), other.add_(1)


def test_tensors_among_defaults_are_inputs_with_names_of_their_own() -> None:
    shifted.__defaults__ = (taeda.ones(2),)
    shifted.__kwdefaults__ = {"other": taeda.zeros(3)}
    backend = Counting()
    compiled = taeda.compile(lambda: shifted(), backend=backend, fullgraph=True)
    assert [t.tolist() for t in compiled()] == [[2, 2], [1, 1, 1]]
    names = backend.modules[0].graph.find_nodes(op="placeholder")
    assert len({node.target for node in names}) == len(names) >= 2
    assert [t.tolist() for t in shifted()] == [[3, 3], [2, 2, 2]]


def test_a_compiled_module_tells_how_it_is_compiled() -> None:
    backend = Counting()
    compiled = taeda.compile(taeda.nn.Linear(2, 2), backend=backend)
    assert compiled.dynamo_ctx(double)(taeda.ones(2)).tolist() == [2, 2]
    assert len(backend.modules) == 1


def test_a_compiled_module_is_as_long_and_true_as_its_module() -> None:
    for held in (nn.ModuleList(), nn.Sequential(nn.ReLU()), nn.ReLU()):
        compiled = taeda.compile(held, backend="eager")
        assert bool(compiled) is bool(held)
        if hasattr(held, "__len__"):
            assert len(compiled) == len(held)


def test_run_captures_nothing() -> None:
    counter = CompileCounter()
    double = taeda.compile(lambda x: x * 2, backend=counter)
    double(taeda.ones(2))
    for size in (2, 3):
        assert taeda._dynamo.run(double)(taeda.ones(size)).tolist() == [2.0] * size
    assert counter.frame_count == 1
    double(taeda.ones(3))
    assert counter.frame_count == 2
