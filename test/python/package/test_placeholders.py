"""Names that are not there: `hasattr` is False, but for the table of placeholders.

The table holds what these packages name while they are imported under
`taeda.as_torch`: transformers, accelerate, peft, lightning, torchmetrics, gpytorch,
pyro, torch_geometric, kornia, timm, einops, diffusers, botorch, torchvision, fvcore.
"""

from __future__ import annotations

import importlib
import pathlib
import pickle
import types

import pytest
import taeda
from taeda._compat import entries, listing
from taeda._compat.table import DEVICES, TABLE

ABSENT = """
no_such_loop ao.nn onnx.export
sparse.no_such sparse.spsolve
jit.CompilationUnit jit.set_fusion_strategy jit.optimized_execution compiler.no_such
fft.no_such distributed.all_produce distributed.no_such
distributed.rpc.no_such distributed.optim.no_such accelerator.no_such cuda.no_such
backends.cuda.no_such quantize_per_tensor quint2x4 int4 nn.quantized
_dynamo.no_such _dynamo.config.no_such linalg.no_such special.no_such
library.no_such utils.checkpoint.no_such xpu.no_such
autograd.graph.no_such ops.aten._no_such
""".split()
# A native takes the place of the placeholder with its name.
NAMES = [
    (module, name)
    for module in TABLE
    for name in entries(f"taeda.{module}")
    if module or not hasattr(taeda._C._VariableFunctions, name)
]


def found(path: str):
    """What a dotted name of ours stands for."""
    value = taeda
    for part in path.split(".") if path else ():
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("path", ABSENT)
def test_absent_names_are_absent(path) -> None:
    module, _, name = path.rpartition(".")
    assert not hasattr(found(module), name)


def test_the_error_of_an_absent_name_says_that_it_is_not_there_yet() -> None:
    with pytest.raises(AttributeError, match="'taeda.onnx' has no attribute 'export'"):
        getattr(taeda.onnx, "export")  # noqa: B009
    with pytest.raises(AttributeError, match="taeda has no such thing yet"):
        getattr(taeda.linalg, "no_such")  # noqa: B009
    with pytest.raises(ImportError, match="export"):
        from taeda.onnx import export  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="taeda.no_such_loop"):
        importlib.import_module("taeda.no_such_loop")


@pytest.mark.parametrize("module, name", NAMES)
def test_placeholders_import_and_refuse(module, name) -> None:
    full = f"taeda.{module}".rstrip(".")
    path = f"{module}.{name}".lstrip(".").replace(":", ".")
    value = found(path)
    if ":" not in module and module != "_C":
        assert hasattr(importlib.import_module(full), name)
    with pytest.raises(NotImplementedError, match=f"{name}.* is not implemented"):
        value()
    if isinstance(value, type):
        assert not isinstance(taeda.ones(1), value)
        assert not isinstance(taeda.nn.Linear(1, 1), value)


def test_placeholders_are_one_object_wherever_they_are_found() -> None:
    from taeda.distributed.tensor import DTensor

    assert DTensor is taeda.distributed.tensor.DTensor


def test_the_page_of_the_documentation_is_the_table() -> None:
    page = pathlib.Path(__file__).parents[3] / "docs" / "placeholders.md"
    assert page.read_text() == listing()


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_modules_of_absent_devices_have_what_their_line_says(name) -> None:
    module = importlib.import_module(f"taeda.{name}")
    real = importlib.import_module(f"torch.{name}")
    assert module is found(name)
    line = DEVICES[name][1].split()
    shown = {e.partition("!")[0].partition("=")[0] for e in line}
    loaded = {n.rpartition(".")[2] for n in DEVICES if n.startswith(f"{name}.")}
    assert {n for n in vars(module) if not n.startswith("_")} - loaded == shown
    assert all(hasattr(real, n) for n in shown)
    for public in module.__all__:
        value = getattr(module, public)
        assert pickle.loads(pickle.dumps(value)) is value or value == ()
        if value != ():
            assert module.__name__.startswith(value.__module__)
    for entry in line:
        refused, mark, part = entry.partition("!")
        text = f"Cannot execute {part}" if part else f"{name.upper()} enabled"
        if mark:
            with pytest.raises(RuntimeError if part else AssertionError, match=text):
                getattr(module, refused)()


def claimed(module: types.ModuleType):
    names = getattr(module, "__all__", None) or dir(module)
    return [name for name in names if not name.startswith("_")]


# Functions of modules for devices that are not there raise what a build of PyTorch
# without them raises; distributions and jit have tests of their own.
SPACES = """
nn nn.functional nn.utils nn.init optim optim.lr_scheduler autograd autograd.graph
autograd.functional utils utils.data utils.checkpoint linalg special fft func fx onnx
profiler compiler _dynamo backends amp random serialization futures multiprocessing
distributed library overrides testing
""".split()


@pytest.mark.parametrize("space", ["", *SPACES])
def test_nothing_outside_the_table_is_a_refusal(space) -> None:
    """No public function consists of a raise: such a name would better be absent."""
    module = found(space)
    table = entries(f"taeda.{space}".rstrip("."))
    allowed = {"reinforce", "variable"}  # PyTorch's own, which refuse there too
    refusing = []
    for name in set(claimed(module)) - table.keys() - allowed:
        value = getattr(module, name)
        code = getattr(value, "__code__", None)
        if code is not None and code.co_name in ("refuse", "missing"):
            refusing.append(name)
    assert refusing == []
