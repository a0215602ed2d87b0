"""Module: attributes, registration, walking, conversion, copies, printing."""

from __future__ import annotations

import copy
import pickle

import pytest
import taeda
from taeda import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 2, bias=False)
        self.register_buffer("scale", taeda.ones(1))
        self.register_buffer("hidden", taeda.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def test_registration_order_and_names():
    net = Pair()
    names = ["first.weight", "first.bias", "second.weight"]
    assert [n for n, _ in net.named_parameters()] == names
    assert [n for n, _ in net.named_buffers()] == ["scale", "hidden"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "second"]
    assert list(net.state_dict()) == ["scale", *names]
    assert [type(m).__name__ for m in net.children()] == ["Linear", "Linear"]


def test_shared_parts_are_seen_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    net.append(net[0])
    assert len(list(net.modules())) == 3
    assert len(list(net.named_modules(remove_duplicate=False))) == 4


def test_attribute_moves_between_tables():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(taeda.ones(1))
    assert "x" not in net.__dict__ and "x" in net._parameters
    net.x = None
    assert net._parameters["x"] is None and net.x is None
    del net.x
    net.x = nn.ReLU()
    assert list(net._modules) == ["x"] and not net._parameters
    net.buffer = nn.Buffer(taeda.ones(1), persistent=False)
    assert "buffer" in net._buffers and not net.state_dict()
    del net.buffer
    assert not hasattr(net, "buffer")


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: setattr(m, "weight", 1), TypeError, "cannot assign 'int'"),
        (lambda m: setattr(m, "weight", nn.ReLU()), TypeError, "as parameter 'weight'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, "can't contain"),
        (lambda m: m.register_parameter("", None), KeyError, "empty string"),
        (lambda m: m.register_parameter(1, None), TypeError, "should be a string"),
        (lambda m: m.register_parameter("x", 1), TypeError, "cannot assign 'int'"),
        (lambda m: m.register_buffer("forward", None), KeyError, "already exists"),
        (lambda m: m.register_buffer("x", 1), TypeError, "cannot assign 'int'"),
        (lambda m: m.add_module("x", 1), TypeError, "is not a Module subclass"),
        (lambda m: m.add_module("train", nn.ReLU()), KeyError, "already exists"),
        (lambda m: m.missing, AttributeError, "has no attribute 'missing'"),
        (lambda m: m.get_submodule("weight"), AttributeError, "not an nn.Module"),
        (lambda m: m.get_submodule("x.y"), AttributeError, "has no attribute `x`"),
        (lambda m: m.get_parameter("training"), AttributeError, "not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "is not a buffer"),
        (lambda m: m.set_submodule("", nn.ReLU()), ValueError, "target name"),
        (lambda m: m.train(1), ValueError, "boolean"),
        (lambda m: m.to(taeda.int64), TypeError, "floating point or complex"),
        (lambda m: m.to(1.5, 2, 3, 4), TypeError, ""),
        (lambda m: m.get_extra_state(), RuntimeError, "get_extra_state"),
        (lambda m: nn.Module()(1), NotImplementedError, 'required "forward"'),
        (lambda m: nn.Module(1), TypeError, "takes 1 positional argument but 2"),
        (lambda m: nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
    ],
)
def test_misuse_is_refused(act, error, text):
    with pytest.raises(error) as caught:
        act(nn.Linear(2, 2))
    assert text in str(caught.value.args[0])


def test_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    assert Early(3).value == 3
    for value, kind in ((nn.Parameter(taeda.ones(1)), "param"), (nn.ReLU(), "module")):
        with pytest.raises(AttributeError, match=f"cannot assign {kind}"):
            Early(value)


def test_non_leaf_parameter_is_refused():
    weight = nn.Parameter(taeda.ones(1))
    with pytest.raises((ValueError, TypeError)):
        nn.Module().register_parameter("w", weight * 2)


def test_conversion_keeps_identity_and_gradient():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer(taeda.ones(1, 2)).sum().backward()
    assert layer.double() is layer and layer.weight is weight
    assert weight.dtype is taeda.float64 and weight.grad.dtype is taeda.float64
    layer.to("meta")
    assert layer.weight.is_meta and layer.weight.requires_grad
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu"
    net = nn.BatchNorm1d(2).half()
    assert net.running_mean.dtype is taeda.float16
    assert net.num_batches_tracked.dtype is taeda.int64


def test_train_eval_requires_grad_zero_grad():
    net = Pair()
    assert net.eval() is net and not net.first.training
    assert net.train().second.training
    net(taeda.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(float(p.grad.abs().sum()) == 0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


def test_deepcopy_and_pickle():
    net = Pair().eval()
    net.register_forward_hook(_note)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert not twin.training and type(twin.first.weight) is nn.Parameter
        assert twin.first.weight is not net.first.weight
        assert bool((twin.first.weight == net.first.weight).all())
        assert len(twin._forward_hooks) == 1
        x = taeda.ones(1, 2)
        assert bool((twin(x) == net(x)).all())


def _note(module, args, output):
    return None


def test_lazily_made_hook_tables_are_found():
    layer = nn.ReLU()
    assert not layer._hooked
    assert len(layer._forward_hooks) == 0 and layer._hooked
    layer._forward_hooks[0] = lambda m, a, o: o + 1
    assert float(layer(taeda.zeros(()))) == 1


def test_instance_forward_and_subclass_call():
    layer = nn.ReLU()
    layer.forward = lambda x: x * 3
    assert float(layer(taeda.ones(()))) == 3

    class Loud(nn.Identity):
        def __call__(self, x):
            return super().__call__(x) + 1

    assert Loud()(1) == 2


def test_dir_hides_numbers_and_shows_tables():
    names = dir(nn.Sequential(nn.Linear(1, 1)))
    assert "0" not in names and "forward" in names
    assert {"weight", "bias"} <= set(dir(nn.Linear(1, 1)))


def test_repr():
    net = nn.Sequential(nn.Linear(1, 2), nn.ModuleList([nn.ReLU(), nn.ReLU()]))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=1, out_features=2, bias=True)\n"
        "  (1): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "  )\n"
        ")"
    )


def test_apply_set_submodule_get():
    net, seen = Pair(), []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "Pair"]
    net.set_submodule("first", nn.Identity())
    assert isinstance(net.get_submodule("first"), nn.Identity)
    assert net.get_parameter("second.weight") is net.second.weight
    assert net.get_buffer("scale") is net.scale


def test_call_super_init():
    class Base:
        def __init__(self, value):
            self.value = value

    class Mixed(nn.Module, Base):
        call_super_init = True

    assert Mixed(5).value == 5


TO = [
    lambda m, T: m.to("cpu", True),
    lambda m, T: m.to(None, True),
    lambda m, T: m.to("cpu", T.tensor(3), non_blocking=True),
    lambda m, T: m.to("cpu", device="cpu"),
    lambda m, T: m.to([]),
    lambda m, T: m.to(other=T.ones(1)),
    lambda m, T: m.to("cpu", copy=True),
    lambda m, T: m.to(float),
    lambda m, T: m.to("cpu", dtype=complex),
    lambda m, T: m.to(T.ones(1, dtype=T.float64), memory_format=T.channels_last),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", range(len(TO)))
def test_forms_of_to(case):
    import torch

    found = []
    for library in (taeda, torch):
        try:
            moved = TO[case](library.nn.Linear(1, 1), library)
            found.append(str(moved.weight.dtype).rpartition(".")[2])
        except (TypeError, RuntimeError) as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_a_conversion_may_change_the_layout():
    layer = nn.Linear(3, 2)
    layer.weight.grad = taeda.ones(2, 3)
    layer._apply(lambda t: t.to_sparse())
    assert layer.weight.is_sparse and layer.weight.grad.is_sparse
    assert isinstance(layer.weight, nn.Parameter)


def test_tables_of_hooks_may_be_deleted():
    layer = nn.ParameterList([taeda.ones(1)])
    del layer._forward_pre_hooks, layer._state_dict_hooks
    del layer._non_persistent_buffers_set
    assert len(pickle.loads(pickle.dumps(layer))) == 1


def test_first_memory_makes_new_parameters():
    import torch

    for library in (taeda, torch):
        layer = library.nn.BatchNorm1d(2, device="meta")
        before = list(layer.parameters())
        layer.to_empty(device="cpu")
        after = layer.parameters()
        assert all(a is not b for a, b in zip(before, after, strict=True))
        weight = layer.weight
        assert layer.double().weight is weight and weight.dtype == library.float64
