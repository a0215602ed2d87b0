"""Every module of `nn` on fake tensors whose first dim is a symbol.

Modules and inputs are those of PyTorch's own tests. The sizes of the results, by their
hints, are those of a call on real tensors; nothing is allocated; and the symbol stays
one unless the call asks what it is.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator

import pytest
import taeda
import torch
from taeda._dynamo import mark_static
from taeda._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensor,
    FakeTensorMode,
)
from taeda.fx.experimental.symbolic_shapes import ShapeEnv, is_symbolic
from taeda.utils._pytree import tree_leaves, tree_map, tree_map_only

# What looks at values: PyTorch's does, too, but for the last.
READS_VALUES = {
    "BatchNorm1d": "momentum=None: the count of batches is a number",
    "BatchNorm2d": "as BatchNorm1d",
    "BatchNorm3d": "as BatchNorm1d",
    "GaussianNLLLoss": "whether a variance is negative",
    "CTCLoss": "the lengths of the targets, of which the kernel has a list",
}
# Calls, and those of them in which every symbol stays one. The first dim of the others
# is no batch (inputs without one, sequences), or they are losses that read values.
CALLS, SYMBOLS_KEPT = 400, 290


def own(value):
    """A value of PyTorch's samples as ours."""
    if isinstance(value, torch.Tensor):
        return taeda.from_numpy(value.detach().contiguous().numpy().copy())
    if isinstance(value, torch.dtype):
        return getattr(taeda, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return taeda.device("cpu")
    return value


def samples() -> Iterator[tuple[str, type, tuple, tuple]]:
    """Name, class, arguments of its constructor and of its call."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        cls = getattr(taeda.nn, info.module_cls.__name__, None)
        path = info.module_cls.__module__
        if cls is None or not path.startswith("torch.nn.modules"):
            continue
        made = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
        )
        for sample in made[:6]:
            if sample.forward_input is None:
                continue
            parts = (sample.constructor_input, sample.forward_input)
            build, call = ((list(p.args), p.kwargs) for p in parts)
            yield cls.__name__, cls, tree_map(own, build), tree_map(own, call)


def fake_module(module, mode: FakeTensorMode):
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, t in table.items():
                if t is not None:
                    table[name] = mode.from_tensor(t, static_shapes=True)
    return module


def fake_input(t, mode: FakeTensorMode):
    if t.dim() > 0:
        mark_static(t, range(1, t.dim()))
    return mode.from_tensor(t)


def tensors(tree) -> list:
    return [t for t in tree_leaves(tree) if isinstance(t, taeda.Tensor)]


def run(cls, build, call) -> str:
    """What became of the symbols; None where real tensors are refused."""
    module = cls(*build[0], **build[1])
    wanted = [tuple(t.shape) for t in tensors(module(*call[0], **call[1]))]
    mode = FakeTensorMode(shape_env=ShapeEnv())
    module = fake_module(module, mode)
    args, kwargs = tree_map_only(taeda.Tensor, lambda t: fake_input(t, mode), call)
    given = [t for t in tensors((args, kwargs)) if any(map(is_symbolic, t.shape))]
    with mode:
        found = tensors(module(*args, **kwargs))
    for t in found:
        assert isinstance(t, FakeTensor)
        assert t.data_ptr() == 0
    kept = all(any(map(is_symbolic, t.shape)) for t in given)
    assert [tuple(map(int, t.shape)) for t in found] == wanted
    return "none" if not given else "kept" if kept else "fixed"


@pytest.mark.filterwarnings("ignore")
def test_modules_on_a_symbolic_batch():
    seen, failed = Counter(), {}
    for name, cls, build, call in samples():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                cls(*build[0], **build[1])(*call[0], **call[1])
            except (RuntimeError, TypeError, ValueError, AssertionError):
                continue  # samples whose arguments are PyTorch's own
        try:
            seen[run(cls, build, call)] += 1
        except DataDependentOutputException:
            seen["reads values"] += 1
            if name not in READS_VALUES:
                failed[name] = "reads values"
        except Exception as error:
            if name in READS_VALUES:
                seen["reads values"] += 1
            else:
                failed.setdefault(name, f"{type(error).__name__}: {error}"[:300])
    print(dict(seen))
    assert not failed, "\n".join(f"{k}: {v}" for k, v in failed.items())
    assert seen.total() >= CALLS
    assert seen["kept"] >= SYMBOLS_KEPT
