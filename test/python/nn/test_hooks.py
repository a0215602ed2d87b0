"""Forward, backward and global hooks."""

from __future__ import annotations

import copy
import io

import pytest
import taeda
from taeda import nn
from taeda.nn.modules import module as module_file


def test_forward_hooks_in_order():
    layer, calls = nn.Identity(), []
    layer.register_forward_pre_hook(lambda m, a: calls.append("pre 1"))
    layer.register_forward_pre_hook(lambda m, a: calls.append("pre 0"), prepend=True)
    layer.register_forward_hook(lambda m, a, o: calls.append("post 1"))
    layer.register_forward_hook(lambda m, a, o: calls.append("post 0"), prepend=True)
    assert layer(3) == 3
    assert calls == ["pre 0", "pre 1", "post 0", "post 1"]


def test_results_replace_input_and_output():
    layer = nn.Identity()
    first = layer.register_forward_pre_hook(lambda m, a: a[0] + 1)
    layer.register_forward_hook(lambda m, a, o: o * 10)
    assert layer(1) == 20
    first.remove()
    assert layer(1) == 10


class Scaled(nn.Module):
    def forward(self, x, factor=1):
        return x * factor


def test_hooks_with_kwargs():
    layer = Scaled()
    layer.register_forward_pre_hook(
        lambda m, a, k: (a, {"factor": k["factor"] + 1}), with_kwargs=True
    )
    layer.register_forward_hook(lambda m, a, k, o: (o, k), with_kwargs=True)
    assert layer(2, factor=2) == (6, {"factor": 3})
    layer.register_forward_pre_hook(lambda m, a, k: 1, with_kwargs=True)
    with pytest.raises(RuntimeError, match="tuple of"):
        layer(2, factor=2)


def test_always_call_after_an_error():
    class Broken(nn.Module):
        def forward(self):
            raise ValueError("broken")

    layer, calls = Broken(), []
    layer.register_forward_hook(lambda *a: calls.append(1), always_call=True)
    layer.register_forward_hook(lambda *a: calls.append(2))
    with pytest.raises(ValueError, match="broken"):
        layer()
    assert calls == [1]


def test_global_hooks():
    calls = []
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, a: calls.append("pre")),
        module_file.register_module_forward_hook(lambda m, a, o: calls.append("post")),
        module_file.register_module_full_backward_hook(
            lambda m, i, o: calls.append("back")
        ),
    ]
    try:
        x = taeda.ones(1).requires_grad_()
        nn.ReLU()(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    nn.ReLU()(taeda.ones(1))
    assert calls == ["pre", "post", "back"]


def test_registration_hooks():
    seen = []
    handles = [
        module_file.register_module_parameter_registration_hook(
            lambda m, n, p: seen.append(n)
        ),
        module_file.register_module_buffer_registration_hook(
            lambda m, n, b: seen.append(n)
        ),
        module_file.register_module_module_registration_hook(
            lambda m, n, c: seen.append(n)
        ),
    ]
    try:
        nn.Sequential(nn.BatchNorm1d(1, affine=False))
        nn.Linear(1, 1, bias=False)
    finally:
        for handle in handles:
            handle.remove()
    buffers = ["running_mean", "running_var", "num_batches_tracked"]
    assert seen == [*buffers, "0", "weight"]


def test_full_backward_hook_sees_and_replaces():
    layer = nn.Linear(2, 1, bias=False)
    with taeda.no_grad():
        layer.weight.copy_(taeda.tensor([[2.0, 3.0]]))
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    layer.register_full_backward_hook(hook)
    layer.register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
    x = taeda.ones(1, 2).requires_grad_()
    layer(x).sum().backward()
    assert seen == [([[4.0, 6.0]], [[2.0]])]
    assert x.grad.tolist() == [[40.0, 60.0]]
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_backward_hook_without_input_gradient():
    layer, seen = nn.Linear(1, 1), []
    layer.register_full_backward_hook(lambda m, i, o: seen.append((i, len(o))))
    layer(taeda.ones(1, 1)).sum().backward()
    assert seen == [((None,), 1)]


def test_backward_hook_result_is_counted():
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda m, i, o: (i[0], i[0]))
    x = taeda.ones(1).requires_grad_()
    with pytest.raises(RuntimeError, match="invalid number of grad_input"):
        layer(x).sum().backward()


def test_old_and_full_backward_hooks_do_not_mix():
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda m, i, o: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        layer.register_backward_hook(lambda m, i, o: None)


def test_old_backward_hook_fires():
    layer, seen = nn.ReLU(), []
    layer.register_backward_hook(lambda m, i, o: seen.append(len(o)))
    layer(taeda.ones(1).requires_grad_()).sum().backward()
    assert seen == [1]


def test_compile_runs_the_compiled_call():
    layer = nn.ReLU()
    layer._compiled_call_impl = lambda x: "compiled"
    assert layer(1) == "compiled"
    assert "_compiled_call_impl" not in layer.__getstate__()


def test_a_removed_pre_hook_leaves_no_flag_behind():
    layer = nn.Identity()
    handle = layer.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True)
    assert handle.id in layer._forward_pre_hooks_with_kwargs
    handle.remove()
    assert not layer._forward_pre_hooks_with_kwargs


class _RestoresItself(nn.Linear):
    """A class that does not call `Module.__setstate__`, as some packages' do."""

    def __setstate__(self, state):
        self.__dict__.update(state)


def _through_a_file(module):
    file = io.BytesIO()
    taeda.save(module, file)
    file.seek(0)
    return taeda.load(file, weights_only=False)


@pytest.mark.parametrize("again", [_through_a_file, copy.deepcopy, copy.copy])
@pytest.mark.parametrize("kind", [nn.Linear, _RestoresItself])
def test_hooks_of_restored_modules_run(again, kind):
    seen = []
    kept = kind(2, 2)
    kept.register_forward_hook(_returns_nothing)
    for module in (again(kind(2, 2)), again(kept)):
        module.register_forward_pre_hook(lambda *_: seen.append("before"))
        module.register_forward_hook(lambda *_: seen.append("after"))
        module.register_full_backward_hook(lambda *_: seen.append("backward"))
        module(taeda.ones(1, 2)).sum().backward()
        assert seen == ["before", "after", "backward"]
        seen.clear()


def _returns_nothing(*_):
    """A hook that files can name."""


def test_full_hooks_without_gradients_of_inputs_are_warned_of():
    layer = nn.Linear(2, 1)
    seen = []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        layer(taeda.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


@pytest.mark.parametrize("wrong", ["take as input", "return"])
def test_old_hooks_say_what_they_miss(wrong):
    class Layer(nn.Module):
        def forward(self, x):
            return x[0] * 2 if wrong == "take as input" else [x * 2]

    layer = Layer()
    layer.register_backward_hook(lambda *args: None)
    x = taeda.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match=f"does not {wrong} a single Tensor"):
        layer([x] if wrong == "take as input" else x)


def test_all_global_hooks_are_dropped_by_an_assignment():
    module_file.register_module_forward_hook(lambda m, a, o: o + 1)
    assert nn.Identity()(1) == 2
    module_file._global_forward_hooks = {}
    assert nn.Identity()(1) == 1
    with module_file.register_module_forward_hook(lambda m, a, o: o + 2):
        assert nn.Identity()(1) == 3
