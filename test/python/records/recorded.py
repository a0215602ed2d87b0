"""Arguments of kernels, recorded while PyTorch runs the samples of its own tests.

PyTorch's operators have the names and schemas of Taeda's, so what its dispatcher sees
below autograd, forward and backward, are arguments for Taeda's kernels.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator

import expecttest  # noqa: F401  PyTorch's testing modules import it
import taeda
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tools.codegen.schema_types import Argument, Schema

SAMPLES, MOST_ELEMENTS = 20, 5000
# Of the calls recorded, so many that differ in ranks or in which tensors are there.
KEPT = 12


class _Recorder(TorchDispatchMode):
    def __init__(self, wanted: dict[str, Schema]) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: dict[str, dict[tuple, dict]] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.name().removeprefix("aten::")
        if function.namespace == "aten" and name in self.wanted:
            self._record(name, args, kwargs)
        return function(*args, **kwargs)

    def _record(self, name: str, args: tuple, kwargs: dict) -> None:
        key = tuple(_shown(v) for v in (*args, *sorted(kwargs.items())))
        calls = self.found.setdefault(name, {})
        # Sparse tensors have suites of their own (test/python/sparse).
        if any(_is_sparse(v) for v in tree_leaves((args, kwargs))):
            return
        if len(calls) < KEPT and key not in calls:
            calls[key] = bind_values(self.wanted[name], to_taeda((args, kwargs)))


def _is_sparse(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def _shown(value: object) -> object:
    """What two calls have to differ in, to be both of interest."""
    if isinstance(value, torch.Tensor):
        return "tensor", value.dim()
    if isinstance(value, (list, tuple)):
        return tuple(map(_shown, value))
    return str(value) if isinstance(value, (bool, str, type(None))) else type(value)


def to_taeda(tree):
    return tree_map(_leaf, tree)


def _leaf(value: object) -> object:
    if isinstance(value, torch.Tensor):
        plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
        return taeda.from_numpy(plain.numpy().copy())
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return getattr(taeda, str(value).removeprefix("torch."))
    if isinstance(value, torch.layout):
        return None
    if isinstance(value, torch.device):
        return taeda.device("cpu")
    return value


def bind_values(schema: Schema, call: tuple) -> dict:
    """A value for every argument that is not an out= tensor, by name."""
    args, kwargs = call
    values = {a.name: _default(a) for a in schema.arguments if a.has_default}
    values |= dict(zip((a.name for a in schema.positional), args, strict=False))
    return values | kwargs


def _default(argument: Argument) -> object:
    """The default of an argument; schemas give dtypes as numbers (4: int64)."""
    if argument.type.base == "ScalarType" and argument.default is not None:
        return {4: taeda.int64}[argument.default]
    default = argument.default
    return list(default) if isinstance(default, tuple) else default


def calls_of(op) -> Iterator[tuple]:
    """A few small samples as (input, args, kwargs) and whether they have gradients."""
    known = [torch.float64, torch.float32, torch.int64, *op.dtypes]
    dtype = next((t for t in known if t in op.dtypes), None)
    if dtype is None:
        return
    grad = op.supports_autograd and dtype.is_floating_point
    torch.default_generator.manual_seed(0)
    # Not `sample_inputs`, which looks for the running test in the stack at each sample.
    samples = op.sample_inputs_func(op, "cpu", dtype, grad)
    for sample in itertools.islice(samples, SAMPLES):
        call = (sample.input, sample.args, sample.kwargs)
        tensors = [t for t in tree_leaves(call) if isinstance(t, torch.Tensor)]
        if sum(t.numel() for t in tensors) <= MOST_ELEMENTS:
            yield call


def _database() -> list:
    """PyTorch's operators with their samples.

    Importing them freezes the switches of `torch.backends`, which other tests set.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    switches = torch.backends.flags_frozen.__globals__
    switches["__allow_nonbracketed_mutation_flag"] = True
    return [op for op in op_db if not op.name.startswith("jiterator")]


def record(wanted: dict[str, Schema]) -> dict[str, list[dict]]:
    """Calls of the wanted overloads by name, each a value for every argument."""
    recorder = _Recorder(wanted)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for op in _database():
                _run(op, recorder)
    finally:
        torch.set_num_threads(threads)
    return {name: list(calls.values()) for name, calls in recorder.found.items()}


def _run(op, recorder: _Recorder) -> None:
    for self, args, kwargs in calls_of(op):
        try:
            with recorder:
                out = op(self, *args, **kwargs)
                _backward(tree_leaves(out))
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            # Samples that PyTorch itself cannot run on this machine.
            continue


def _backward(outputs: Iterable) -> None:
    outs = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    if outs:
        torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
