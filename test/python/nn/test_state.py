"""state_dict and load_state_dict: strictness, versions, extra state, hooks, assign."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import taeda
from taeda import nn


def test_type_metadata_and_prefix():
    net = nn.Sequential(nn.BatchNorm1d(2))
    state = net.state_dict(prefix="net.")
    assert isinstance(state, OrderedDict) and next(iter(state)) == "net.0.weight"
    assert state._metadata["net.0"] == {"version": 2}
    assert state._metadata["net"] == {"version": 1}


def test_values_share_memory_and_are_detached():
    layer = nn.Linear(1, 1)
    state = layer.state_dict()
    assert not state["weight"].requires_grad
    assert state["weight"].data_ptr() == layer.weight.data_ptr()
    assert layer.state_dict(keep_vars=True)["weight"] is layer.weight


def test_strict_errors_name_the_keys():
    layer = nn.Linear(2, 2)
    state = {"weight": taeda.zeros(3, 2), "extra": taeda.zeros(1)}
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Linear:\n\tMissing key")
    assert 'Missing key(s) in state_dict: "bias". ' in text
    assert 'Unexpected key(s) in state_dict: "extra". ' in text
    assert "size mismatch for weight: copying a param with shape" in text
    found = layer.load_state_dict({"extra": taeda.zeros(1)}, strict=False)
    assert found.missing_keys == ["weight", "bias"]
    assert found.unexpected_keys == ["extra"]
    with pytest.raises(TypeError, match="dict-like"):
        layer.load_state_dict([1])


def test_nested_unexpected_and_missing():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1)))
    state = net.state_dict()
    state["1.0.scale"] = state.pop("1.0.weight")
    state["2.weight"] = taeda.zeros(1)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["1.0.weight"]
    assert sorted(found.unexpected_keys) == ["1.0.scale", "2.weight"]


def test_assign_takes_the_tensors():
    with taeda.device("meta"):
        layer = nn.Linear(2, 2)
    state = nn.Linear(2, 2).double().state_dict()
    layer.load_state_dict(state, assign=True)
    assert layer.weight.dtype is taeda.float64
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad
    assert layer.weight.data_ptr() == state["weight"].data_ptr()


def test_copying_into_meta_warns():
    with taeda.device("meta"):
        layer = nn.Linear(1, 1, bias=False)
    with pytest.warns(UserWarning, match="no-op"):
        layer.load_state_dict({"weight": taeda.ones(1, 1)})


def test_one_element_into_scalar():
    net = nn.Module()
    net.x = nn.Parameter(taeda.zeros(()))
    net.load_state_dict({"x": taeda.ones(1)})
    assert float(net.x) == 1


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state():
    net = nn.Sequential(Counter())
    net[0].count = 7
    state = net.state_dict()
    assert list(state) == ["0._extra_state"]
    other = nn.Sequential(Counter())
    other.load_state_dict(state)
    assert other[0].count == 7
    with pytest.raises(RuntimeError, match="_extra_state"):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected"):
        nn.Sequential(nn.ReLU()).load_state_dict(state)


def test_hooks():
    layer, calls = nn.Linear(1, 1), []

    def before(module, prefix, keep_vars):
        calls.append("before")

    def after(module, state, prefix, metadata):
        state[prefix + "more"] = 1

    def loading(module, state, prefix, *rest):
        state.pop("more", None)
        calls.append("loading")

    def loaded(module, keys):
        calls.append("loaded")

    layer.register_state_dict_pre_hook(before)
    handle = layer.register_state_dict_post_hook(after)
    layer.register_load_state_dict_pre_hook(loading)
    layer.register_load_state_dict_post_hook(loaded)
    layer.load_state_dict(layer.state_dict())
    assert calls == ["before", "loading", "loaded"]
    handle.remove()
    assert "more" not in layer.state_dict()
    with pytest.raises(RuntimeError, match="post hook"):
        layer._register_state_dict_hook(after)


def test_hook_results_are_checked():
    layer = nn.ReLU()
    layer.register_state_dict_post_hook(lambda *args: {})
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()
    layer = nn.ReLU()
    layer.register_load_state_dict_post_hook(lambda *args: 1)
    with pytest.raises(AssertionError):
        layer.load_state_dict({})


def test_overridden_parts_are_called():
    class Renamed(nn.Linear):
        def state_dict(self, *args, **kwargs):
            state = super().state_dict(*args, **kwargs)
            return state

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[prefix + "w"] = self.weight.detach()

        def _load_from_state_dict(self, state, prefix, *rest):
            state[prefix + "weight"] = state.pop(prefix + "w")
            state[prefix + "bias"] = self.bias.detach()
            super()._load_from_state_dict(state, prefix, *rest)

    net = nn.Sequential(Renamed(1, 1))
    state = net.state_dict()
    assert list(state) == ["0.w"]
    state["0.w"] = taeda.full((1, 1), 5.0)
    net.load_state_dict(state)
    assert float(net[0].weight) == 5


def test_batch_norm_before_counting():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    layer = nn.BatchNorm1d(2)
    layer.load_state_dict(state)
    assert int(layer.num_batches_tracked) == 0


def test_positional_arguments_still_work():
    with pytest.warns(FutureWarning):
        state = nn.ReLU().state_dict({}, "a.")
    assert state == {}


def test_consume_prefix():
    from taeda.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.Sequential(nn.Linear(1, 1)).state_dict()
    consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"]
    nn.Linear(1, 1).load_state_dict(state)
