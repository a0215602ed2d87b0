"""Programs in PyTorch's name that extend it by `__torch_dispatch__`, run unchanged."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Beside each, what it prints with PyTorch 2.13.
LOGGING = """
import torch
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import TorchDispatchMode
import contextlib

class Logged(torch.Tensor):
    __slots__ = ["elem"]
    context = contextlib.nullcontext
    @staticmethod
    def __new__(cls, elem, *args, **kwargs):
        made = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(),
            storage_offset=elem.storage_offset(), dtype=elem.dtype,
            layout=elem.layout, device=elem.device,
            requires_grad=kwargs.get("requires_grad", False))
        made.elem = elem.detach() if made.requires_grad else elem
        return made
    def __repr__(self):
        return super().__repr__(tensor_contents=f"{self.elem}")
    __torch_function__ = torch._C._disabled_torch_function_impl
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrap = lambda x: x.elem if isinstance(x, cls) else x
        wrap = lambda x: cls(x) if isinstance(x, torch.Tensor) else x
        with cls.context():
            out = tree_map(wrap, func(*tree_map(unwrap, args),
                                      **tree_map(unwrap, kwargs or {})))
        if torch.is_grad_enabled():  # not in the backward pass
            print(func.__module__, func, func.overloadpacket)
        return out

x = Logged(torch.tensor([1.0, 2.0, 3.0]), requires_grad=True)
print(x)
y = (x * x).sum()
y.backward()
print(type(x.grad).__name__, x.grad.elem)
"""
LOGGING_PRINTS = """
Logged(tensor([1., 2., 3.]), requires_grad=True)
torch._ops.aten aten.mul.Tensor aten.mul
torch._ops.aten aten.sum.default aten.sum
torch._ops.aten aten.ones_like.default aten.ones_like
Logged tensor([2., 4., 6.])
"""
ELEMENTWISE_CHECK = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

class NanCheck(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        def check(t):
            if t.is_floating_point() and t.isnan().any():
                raise RuntimeError(f"{func} gave NaN")
            return t
        return tree_map_only(torch.Tensor, check, out)

with NanCheck():
    x = torch.ones(3)
    try:
        (x - 1) / (x - x)
    except RuntimeError as error:
        print(error)
print((x - x) / (x - x))
"""
ELEMENTWISE_CHECK_PRINTS = """
aten.div.Tensor gave NaN
tensor([nan, nan, nan])
"""
DEVICE = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode

class Meta(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "device" in kwargs or func in (torch.ops.aten.ones.default,):
            kwargs["device"] = torch.device("meta")
        return func(*args, **kwargs)

with Meta():
    print(torch.ones(2, 3).device, torch.nn.Linear(3, 4).weight.device)
print(torch.ones(1).device)
"""
DEVICE_PRINTS = """
meta meta
cpu
"""
INT8 = """
import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
aten = torch.ops.aten

class Int8(torch.Tensor):
    @staticmethod
    def __new__(cls, values, scale):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, dtype=scale.dtype, device=values.device)
    def __init__(self, values, scale):
        self.values, self.scale = values, scale
    @classmethod
    def of(cls, w):
        scale = w.abs().amax(1, keepdim=True) / 127
        return cls((w / scale).round().to(torch.int8), scale)
    def dense(self):
        return self.values.to(self.scale.dtype) * self.scale
    def __repr__(self):
        return f"Int8({tuple(self.shape)})"
    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        kwargs = kwargs or {}
        if func is aten.t.default:
            return args[0].dense().t()
        if func is aten.detach.default:
            return return_and_correct_aliasing(
                func, args, kwargs, cls(args[0].values, args[0].scale))
        print("no", func)
        return NotImplemented

torch.manual_seed(0)
layer = torch.nn.Linear(8, 4)
x = torch.ones(2, 8)
want = layer(x)
layer.weight = torch.nn.Parameter(Int8.of(layer.weight.detach()), requires_grad=False)
print(type(layer.weight).__name__, isinstance(layer.weight, torch.nn.Parameter))
print(bool((layer(x) - want).abs().max() < 0.02))
try:
    layer.weight + 1
except TypeError as error:
    print("add.Tensor" in str(error), "Int8" in str(error))
"""
INT8_PRINTS = """
Int8 True
True
no aten.add.Tensor
False True
"""


@pytest.mark.parametrize(
    ("program", "prints"),
    [
        (LOGGING, LOGGING_PRINTS),
        (ELEMENTWISE_CHECK, ELEMENTWISE_CHECK_PRINTS),
        (DEVICE, DEVICE_PRINTS),
        (INT8, INT8_PRINTS),
    ],
)
def test_a_program_prints_what_it_prints_with_pytorch(program, prints, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "taeda.as_torch", str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == prints.lstrip("\n")
