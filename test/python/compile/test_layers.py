"""Every layer through `taeda.compile(fullgraph=True)`: results and gradients of eager.

The calls are those of `dispatch/nn_calls.py`. What no single graph holds stands in
REFUSED, with what the error says, or in WITHOUT_CALLS; a layer that is compiled all the
same fails there.
"""

from __future__ import annotations

import copy
import functools
import operator
import sys
import warnings
from pathlib import Path

import pytest
import taeda
from taeda import nn
from taeda._dynamo.exc import Unsupported
from taeda._dynamo.utils import counters
from taeda.utils._pytree import tree_leaves, tree_map_only

sys.path.insert(0, str(Path(__file__).parents[1] / "dispatch"))
from nn_calls import Call, calls

BATCH = 6
REFUSED = {
    # Sorts the targets by clusters of any size, and asks whether one is empty.
    "AdaptiveLogSoftmaxWithLoss": "data-dependent expression",
}
# Layers that are captured, and call nothing that a graph would hold.
WITHOUT_CALLS = {"Identity"}


def tensors(tree) -> list:
    return [t for t in tree_leaves(tree) if isinstance(t, taeda.Tensor)]


def results(function, module, arguments) -> list:
    """Results, and the gradients of everything that has one."""
    taeda.manual_seed(7)
    found = tensors(function(*arguments))
    losses = [t.sum() for t in found if t.requires_grad]
    if losses:
        functools.reduce(operator.add, losses).backward()
    leaves = [*tensors(arguments), *module.parameters()]
    return [*found, *(t.grad for t in leaves if t.requires_grad)]


def copied(t):
    return t.detach().clone().requires_grad_(t.requires_grad)


def same(a, b) -> bool:
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return taeda.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def cases() -> list:
    """With a number after the name, where a layer is called in several ways."""
    found, seen = [], {}
    for call in calls():
        seen[call.name] = seen.get(call.name, -1) + 1
        found.append(pytest.param(call, id=f"{call.name}-{seen[call.name]}"))
    return found


@pytest.mark.parametrize("call", cases())
def test_layer(call: Call) -> None:
    taeda.compiler.reset()
    taeda.manual_seed(3)
    # Leaves, so that each has its gradient.
    arguments = tree_map_only(taeda.Tensor, copied, call.arguments(BATCH))
    module = call.module()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any(
            isinstance(m, nn.modules.lazy.LazyModuleMixin) for m in module.modules()
        ):
            module(*arguments)
        other = copy.deepcopy(module)
        given = tree_map_only(taeda.Tensor, copied, arguments)
        wanted = results(module, module, arguments)
        compiled = taeda.compile(other, fullgraph=True)
        if call.name in REFUSED:
            with pytest.raises(Unsupported, match=REFUSED[call.name]):
                compiled(*given)
            return
        counters.clear()
        found = results(compiled, other, given)
        graphs = counters["stats"]["unique_graphs"]
    assert graphs == (call.name not in WITHOUT_CALLS)
    assert len(found) == len(wanted)
    assert all(map(same, found, wanted))


def test_what_is_refused_is_called() -> None:
    assert REFUSED.keys() | WITHOUT_CALLS <= {call.name for call in calls()}
