"""What programs print of the library's objects and errors is what PyTorch prints."""

from __future__ import annotations

PRINTED = """
import importlib.util, warnings
import torch
from torch import nn

warnings.simplefilter("ignore")
x = torch.ones(2, requires_grad=True)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
texts = [
    type(x.sum().grad_fn), x.sum().grad_fn, type(torch.max(x, 0)), type(x.shape),
    type(x.dtype), type(x.device), type(x.layout), type(x.storage()),
    type(x.untyped_storage()), x.untyped_storage(), x.storage(), torch.Generator(),
    torch.empty(1, device="meta").untyped_storage(), torch.finfo(torch.float32),
    type(torch.finfo(torch.float32)), torch.iinfo(torch.int8), model.forward, schedule,
    torch.utils.data.TensorDataset(x), torch.no_grad(), nn.functional.softmax,
    optimizer, torch.set_grad_enabled(True), torch.OutOfMemoryError, nn.Parameter,
    torch.ops.aten.add.Tensor.__module__, torch.ops.__name__, torch.typename(model),
    torch.ones(2).type(), torch.FloatTensor, torch.per_tensor_affine,
    torch.overrides.resolve_name(torch.Tensor.add), nn.__name__, nn.__package__,
    repr(nn).partition(" from ")[0], repr(torch).partition(" from ")[0],
    importlib.util.find_spec("torch.utils.tensorboard").name,
    importlib.util.find_spec("torch.nn.utils.rnn").submodule_search_locations,
    importlib.util.find_spec("torch.no_such_module"),
]
for text in texts:
    print(str(text).partition(" at 0x")[0])
"""
REFUSED = """
import torch

x, number = torch.ones(2), torch.max(torch.ones(2), 0)
for call in (
    "x.shape.foo", "x.dtype.foo", "x.device.foo", "x.layout.foo", "torch.Size.foo",
    "number.foo", "torch.Generator().foo", "x.untyped_storage().foo", "torch.dtype()",
    "x.shape.__setitem__", "torch.Size(['a'])", "torch.finfo(torch.int8)",
    "torch.nn.Linear(1)", "torch.optim.foo", "torch.return_types.foo",
    "torch.distributed.get_rank(3)",
):
    try:
        eval(call)
    except Exception as error:
        print(call, type(error).__name__, str(error).partition(": taeda has")[0])
"""


def test_objects_are_printed_as_pytorchs(run):
    assert run(PRINTED).split("\n") == run(PRINTED, real=True).split("\n")


def test_errors_name_the_library_as_pytorchs(run):
    found = run(REFUSED)
    assert found.split("\n") == run(REFUSED, real=True).split("\n")
    assert "taeda" not in found and found.count("\n") == 15


def test_modules_run_and_are_read_again(run):
    program = """
        import importlib, runpy, sys, threading
        import torch, torch.optim

        print(importlib.reload(torch.optim).SGD, torch.optim.__loader__.name)
        print(torch.optim.adam.__loader__.get_source("torch.optim.adam")[:3])
        sys.argv = ["run", "--help"]
        try:
            runpy.run_module("torch.distributed.run", run_name="__main__")
        except SystemExit as stop:
            print(stop.code)
        errors = []

        def use():
            try:
                import torch.distributed.fsdp, torch.testing
                torch.distributed.fsdp.FSDPModule, torch.testing.assert_close
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(errors)
        """
    lines = run(program).split("\n")
    assert lines[:2] == ["<class 'torch.optim.sgd.SGD'> torch.optim", '"""']
    assert lines[-2:] == ["0", "[]"]
