"""Tensors of modules taken out and put back by name, against PyTorch."""

from __future__ import annotations

import pytest
import taeda
import torch
from taeda.nn.utils import _named_member_accessor as ours
from torch.nn.utils import _named_member_accessor as theirs

SIDES = ((taeda, ours), (torch, theirs))


def _net(library):
    nn = library.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net[0].plain = library.ones(1)
    return net


def _swapped(library, module):
    """What is in a module after each call, by its sum or its absence."""
    net, t = _net(library), library.full((2, 2), 3.0)
    held = module.NamedMemberAccessor(net)
    weight = net[0].weight
    steps = [module.swap_tensor(net[0], "weight", t) is weight, net[0].weight is t]
    module.set_tensor(net[0], "weight", weight)
    module.set_tensor(net[0], "fresh", t)
    steps += [net[0].weight is weight, net[0].fresh is t]
    steps += [held.swap_tensor("1.running_mean", t).shape == (2,)]
    steps += [held.get_tensor("1.running_mean") is t]
    held.del_tensor("0.fresh")
    steps += [hasattr(net[0], "fresh"), held.get_tensors(["0.plain"])[0].item()]
    before, missing = held.swap_tensors_dict({"0.plain": t, "0.new": t}, True)
    steps += [sorted(before), missing, net[0].new is t]
    held.swap_tensors_dict(before, True)
    steps += [hasattr(net[0], "new"), net[0].plain.item()]
    given = {"0.weight", "1.other"}
    steps += [[sorted(names) for names in held.check_keys(given)]]
    steps += [[name for name, _ in held.named_tensors()]]
    child = library.nn.Identity()
    return [*steps, type(held.swap_submodule("1", child)).__name__, net[1] is child]


def test_tensors_are_swapped_as_by_pytorch() -> None:
    assert _swapped(*SIDES[0]) == _swapped(*SIDES[1])


REFUSED = {
    "dots": (lambda m, net, t: m.swap_tensor(net, "0.weight", t), KeyError),
    "no name": (lambda m, net, t: m.swap_tensor(net, "", t), KeyError),
    "absent": (lambda m, net, t: m.swap_tensor(net[0], "no", t), AttributeError),
    "value": (lambda m, net, t: m.swap_tensor(net[0], "weight", 1), TypeError),
    "attribute": (lambda m, net, t: m.swap_tensor(net[0], "in_features", t), TypeError),
    "child": (lambda m, net, t: m.swap_submodule(net, "7", net[0]), KeyError),
    "no module": (lambda m, net, t: m.swap_submodule(net, "0", t), TypeError),
    "missing": (
        lambda m, net, t: m.NamedMemberAccessor(net).swap_tensors_dict({"0.no": t}),
        RuntimeError,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_as_by_pytorch(case) -> None:
    call, error = REFUSED[case]
    for library, module in SIDES:
        net = _net(library)
        kept = net[0].weight
        with pytest.raises(error):
            call(module, net, library.ones(1))
        assert net[0].weight is kept


def test_a_swap_that_fails_is_undone() -> None:
    net = _net(taeda)
    kept = net[0].weight
    held = ours.NamedMemberAccessor(net)
    tensors = {"0.weight": taeda.ones(1), "0.in_features": taeda.ones(1)}
    with pytest.raises(TypeError, match="in_features"):
        held.swap_tensors_dict(tensors)
    assert net[0].weight is kept
    with pytest.raises(ValueError, match="shorter"):
        held.set_tensors(["0.a", "0.b"], [taeda.ones(1)])
