"""Custom functions and operators under autocast, against PyTorch."""

from __future__ import annotations

import pytest
import taeda
import torch

# Custom functions -----------------------------------------------------------------


def _function(m, cast_inputs, seen):
    class Product(m.autograd.Function):
        @staticmethod
        @m.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, x, parts):
            seen.append((str(x.dtype)[-8:], m.is_autocast_enabled("cpu")))
            seen.append([str(t.dtype)[-8:] for t in parts["of"]])
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @m.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            product = grad.float() @ x.float()
            seen.append((m.is_autocast_enabled("cpu"), str(product.dtype)[-8:]))
            seen.append(str(m.get_autocast_dtype("cpu"))[-8:])
            return product, None

    return Product


@pytest.mark.parametrize("cast_inputs", [None, "float32", "float16"])
@pytest.mark.parametrize("enabled", [True, False])
def test_custom_functions(cast_inputs, enabled):
    def run(m):
        seen: list = []
        dtype = None if cast_inputs is None else getattr(m, cast_inputs)
        function = _function(m, dtype, seen)
        x = m.ones(2, 2, requires_grad=True)
        parts = {"of": (x.detach().bfloat16(), x.detach().double())}
        with m.autocast("cpu", m.float16, enabled=enabled):
            y = function.apply(x, parts)
        y.sum().backward()
        return seen, str(y.dtype)[-8:], x.grad.tolist()

    assert run(taeda) == run(torch)


def test_custom_functions_name_their_device():
    for decorate in (taeda.amp.custom_fwd, taeda.amp.custom_bwd):
        with pytest.raises(TypeError, match="device_type"):
            decorate(lambda ctx: None)
        with pytest.raises(ValueError, match="of type `str`"):
            decorate(lambda ctx: None, device_type=1)


# Custom operators ----------------------------------------------------------------


def test_custom_operators():
    def run(m):
        name = "autocast_test_" + m.__name__

        def f(x: m.Tensor, y: m.Tensor) -> m.Tensor:
            seen.append((str(x.dtype)[-8:], m.is_autocast_enabled("cpu")))
            return x @ y

        seen, found = [], []
        f.__annotations__ = {"x": m.Tensor, "y": m.Tensor, "return": m.Tensor}
        op = m.library.custom_op(f"{name}::f", f, mutates_args=())
        x = m.ones(2, 2)
        for register in (None, m.float16):
            if register is not None:
                m.library.register_autocast(op, "cuda", m.float16)
                op.register_autocast("cpu", register)
            with m.autocast("cpu"):
                found += [op(x, x), op(x.double(), x.double())]
            found.append(op(x, x))
        return seen, [str(t.dtype)[-8:] for t in found]

    assert run(taeda) == run(torch)


def test_custom_operators_for_other_devices_are_refused():
    with pytest.raises(ValueError, match="Unknown device type: xpu"):
        taeda.library.register_autocast("mine::f", "xpu", taeda.float16)
    with pytest.raises(ValueError, match="got unexpected type for op"):
        taeda.library.register_autocast(1, "cpu", taeda.float16)
