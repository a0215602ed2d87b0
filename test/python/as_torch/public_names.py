"""Prints what classes and functions of `torch` say of themselves, as JSON.

Run with PyTorch or under as_torch: {module: {name: [kind, module, name, printed]}}.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
import warnings

MODULES = (
    "torch torch.nn torch.nn.functional torch.nn.init torch.nn.modules.module"
    " torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrize torch.nn.attention"
    " torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.utils.data"
    " torch.utils.checkpoint torch.utils.hooks torch.utils._pytree torch.autograd"
    " torch.autograd.function torch.autograd.functional torch.autograd.graph"
    " torch.amp torch.cuda torch.cuda.amp torch.cpu torch.backends torch.distributions"
    " torch.distributions.constraints torch.distributions.transforms torch.linalg"
    " torch.fft torch.special torch.sparse torch.nested torch.masked torch.func"
    " torch.functional torch.fx torch.fx.graph torch.fx.experimental.symbolic_shapes"
    " torch.export torch.jit torch.package torch.profiler torch.multiprocessing"
    " torch.hub torch.library torch.overrides torch.random torch.serialization"
    " torch.storage torch.testing torch.types torch.return_types torch.distributed"
    " torch.distributed.fsdp torch.distributed.tensor torch.distributed.checkpoint"
    " torch.distributed.tensor.parallel torch.distributed.rpc torch.compiler"
    " torch.signal.windows torch.quasirandom torch.futures torch.accelerator"
).split()


def about(value) -> list[str]:
    own = isinstance(value, type)
    kind = "class" if own else "native"
    if isinstance(value, types.FunctionType):
        kind = "function"
    printed = repr(value) if own and type(value).__repr__ is type.__repr__ else ""
    return [kind, value.__module__ or "", value.__qualname__, printed]


def found() -> dict:
    warnings.simplefilter("ignore")
    result = {}
    for path in MODULES:
        module = importlib.import_module(path)
        assert module.__name__ == path, (module.__name__, path)
        public = getattr(module, "__all__", None) or dir(module)
        names = {n for n in public if not n.startswith("_")}
        values = {n: getattr(module, n, None) for n in sorted(names)}
        called = (type, types.FunctionType, types.BuiltinFunctionType)
        result[path] = {n: about(v) for n, v in values.items() if isinstance(v, called)}
    return result


if __name__ == "__main__":
    json.dump(found(), sys.stdout)
