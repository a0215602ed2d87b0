"""Forward and backward of every module of `nn` where the batch is a symbol.

Each call of `nn_calls` runs on fake tensors whose batch is marked dynamic. Its results
and gradients have the shapes that two real runs at two other batches have, when these
are put in for the symbol; the trace is valid for both; nothing is allocated.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections import Counter

import pytest
import taeda
from nn_calls import Call, calls
from taeda import nn
from taeda._dynamo import mark_dynamic
from taeda._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from taeda.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
)
from taeda.utils._pytree import tree_leaves, tree_map_only

TRACED, OTHERS = 60, (8, 11)
# Calls of the table, and those among them that raise.
KEPT, READING = 250, 7
# By the values of tensors, which a fake tensor does not have.
READS_VALUES = {
    "GaussianNLLLoss": "asks whether a variance is negative",
    "CTCLoss": "the kernel's sizes follow the longest target",
    "AdaptiveLogSoftmaxWithLoss": "sorts the targets by clusters of any size",
}
DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)
# Classes that are no layer: bases, and what has others inside.
NO_LAYERS = {"Container", "Module", "ModuleDict", "ModuleList", "ParameterDict"}
NO_LAYERS |= {"ParameterList", "RNNBase", "RNNCellBase"}
# Of several processes or devices.
NO_LAYERS |= {"DataParallel", "SyncBatchNorm"}
# Bytes of what is no tensor of the trace: numbers in arithmetic, lists of places that
# a program writes down. The smallest tensor with the batch has more.
CONSTANTS = 240


def is_floating(t) -> bool:
    return t.dtype.is_floating_point


def tensors(tree) -> list:
    return [t for t in tree_leaves(tree) if isinstance(t, taeda.Tensor)]


def run(module, arguments) -> list:
    """Results, and the gradients of everything that has one."""
    found = tensors(module(*arguments))
    losses = [t.sum() for t in found if is_floating(t) and t.requires_grad]
    if losses:
        functools.reduce(operator.add, losses).backward()
    leaves = [*tensors(arguments), *module.parameters()]
    return [*found, *(t.grad for t in leaves if t.grad is not None)]


def shapes(values) -> list:
    return [tuple(t.shape) for t in values]


def made(call: Call, n: int):
    """The module, after its lazy parts have seen a batch, and arguments for n."""
    module = call.module()
    if any(isinstance(m, nn.modules.lazy.LazyModuleMixin) for m in module.modules()):
        module(*call.arguments(n))
    return module, call.arguments(n)


def fake_module(module, mode):
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, t in table.items():
                if t is not None:
                    table[name] = mode.from_tensor(t, static_shapes=True)
    return module


def fake_arguments(call: Call, arguments, mode):
    """Fake ones whose dims that follow the batch are symbols, and those dims."""
    other = tensors(call.arguments(TRACED + 1))
    sources = []
    for i, (t, wider) in enumerate(zip(tensors(arguments), other, strict=True)):
        follow = [d for d in range(t.dim()) if t.shape[d] != wider.shape[d]]
        mark_dynamic(t, follow)
        taeda._dynamo.mark_static(t, [d for d in range(t.dim()) if d not in follow])
        sources += [(f"a{i}.size()[{d}]", i, d) for d in follow]
        mode.from_tensor(t, source=f"a{i}")
    return tree_map_only(taeda.Tensor, mode.from_tensor, arguments), sources


def symbolic_run(call: Call) -> None:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    module, arguments = made(call, TRACED)
    fakes, sources = fake_arguments(call, arguments, mode)
    assert sources, "no argument has a batch"
    module = fake_module(module, mode)
    taeda._C._reset_cpu_peak()
    before, *_ = taeda._C._cpu_memory()
    with mode:
        found = run(module, fakes)
    _, peak, *_ = taeda._C._cpu_memory()
    assert peak - before < CONSTANTS, "memory was allocated"
    assert all(isinstance(t, FakeTensor) and t.data_ptr() == 0 for t in found)
    for n in OTHERS:
        real_module, real = made(call, n)
        leaves = tensors(real)
        sizes = {source: leaves[i].shape[d] for source, i, d in sources}
        env = mode.shape_env
        assert env.fits(sizes), env.format_guards(verbose=True)
        wanted = shapes(run(real_module, real))
        assert [env.evaluate(s, sizes) for s in shapes(found)] == wanted


def test_every_layer_is_called():
    layers = {
        name
        for name in dir(nn)
        if isinstance(getattr(nn, name), type)
        and issubclass(getattr(nn, name), nn.Module)
    }
    assert layers - {c.name for c in calls()} == NO_LAYERS


def test_forward_and_backward_keep_the_batch():
    seen, failed = Counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, call in enumerate(calls()):
            if call.name in READS_VALUES:
                with pytest.raises(DATA_DEPENDENT):
                    symbolic_run(call)
                seen["reads values"] += 1
                continue
            try:
                symbolic_run(call)
                seen["kept"] += 1
            except Exception as error:
                failed.append(f"{i} {call.name}: {type(error).__name__}: {error}"[:600])
    print(dict(seen))
    assert not failed, "\n".join([str(len(failed)), *failed])
    assert seen == {"kept": KEPT, "reads values": READING}
