"""Calls bind as PyTorch's do, and wrong ones fail with its words."""

from __future__ import annotations

import pytest
import taeda

# Expressions over `m` (the library) and `x` (a 2 x 2 tensor) that are errors.
WRONG = [
    "m.add(x, 'a')",
    "x.add('a')",
    "m.add(x)",
    "m.add()",
    "m.add(x, x, x, x)",
    "m.add(x, x, alpha='q')",
    "m.add(x, x, beta=1)",
    "m.add(x, m.tensor(2), alpha=m.tensor([2]))",
    "m.mul(x, x, other=x)",
    "m.transpose(x)",
    "x.transpose(0)",
    "x.transpose(0, 1, 2)",
    "x.transpose(0, 'a')",
    "m.exp(3)",
    "m.exp(x, x)",
    "x.exp(1)",
    "x.relu(1)",
    "m.zeros('a')",
    "m.zeros(2, 3, dtype=3)",
    "m.zeros(2, 3, device=3.5)",
    "m.zeros(2, 3, foo=3.5)",
    "m.zeros(2, 3, requires_grad=3)",
    "m.pow(x, 'a')",
    "m.eq(x, None)",
    "m.reshape(x, m.tensor([4]))",
    "x.view('a')",
    "x.view()",
    "x.view([1, 'a'])",
    "x + None",
    "x.numpy(1)",
    "m.cat(3)",
    "m.cat([x, 3])",
    "m.full((2,), 'a')",
    "m.tril(x, 2.5)",
    "m.index_select(x, 0, [1, 2])",
    "m.softmax(x, dim=None)",
    "len(m.tensor(1))",
    "bool(x)",
    "int(x)",
    "range(m.tensor(1.5))",
    "x[0, 0, 0]",
    "x[5]",
    "x[::-1]",
    "m.tensor([[1, 2], [3]])",
    "m.tensor(None)",
    "m.tensor('a')",
    "m.tensor(2**70)",
    "m.tensor([70000], dtype=m.int16)",
    "m.tensor([float('nan')], dtype=m.int64)",
    "m.tensor([1j], dtype=m.float32)",
    "x.sum(2**70)",
    "x + 2**70",
    "m.tensor([300], dtype=m.uint8)",
    "m.Size([1.5])",
    "m.device('nowhere')",
    "m.finfo(m.int32)",
]


def outcome(expression: str, module):
    x = module.tensor([[1.0, 2.0], [3.0, 4.0]])
    try:
        eval(expression, {"m": module, "x": x})
    except Exception as error:
        return type(error).__name__, str(error).replace("taeda.", "torch.")
    return "no error", ""


@pytest.mark.parametrize("expression", WRONG)
def test_message_is_pytorchs(torch, expression):
    ours, theirs = outcome(expression, taeda), outcome(expression, torch)
    assert ours == theirs


# Expressions that are right, compared by their text.
RIGHT = [
    "m.sum(x, axis=1, keepdims=True)",
    "m.add(x=x, other=3)",
    "m.exp(x=x * 0)",
    "m.add(2, x)",
    "m.add(x, 2, alpha=3)",
    "m.add(x, 2, out=m.zeros(2, 2))",
    "m.add(x, m.tensor(2), alpha=m.tensor(2))",
    "x.view(4)",
    "x.view(2, 2)",
    "x.view((2, 2))",
    "x.view([4, 1])",
    "x.view(m.Size([4]))",
    "x.view(m.tensor(4))",
    "x.reshape(-1)",
    "m.zeros(2, 3)",
    "m.zeros((2, 3), dtype=int)",
    "m.zeros([2], dtype=float)",
    "m.zeros(m.Size([1, 2]), dtype=bool)",
    "m.zeros(2, requires_grad=True)",
    "2 - x",
    "2 / x",
    "2 ** x",
    "x ** 2",
    "x // 2",
    "x % 2",
    "-x",
    "x @ x",
    "x == 2",
    "x == None",
    "(x > 1) & (x < 4)",
    "x.size(0), x.size(-1), x.size(), x.shape",
    "x.stride(), x.stride(0)",
    "x.T, x.mT",
    "x.type(), x.type(m.float64), x.type('torch.IntTensor')",
    "x.to(m.int32), x.to('cpu'), x.to(m.zeros(1, dtype=m.float64))",
    "x.to('cpu', m.float64), x.to(dtype=m.int8, copy=True)",
    "x.double(), x.long(), x.bool()",
    "x.tolist(), x[0, 0].item()",
    "float(x[0, 1]), int(x[0, 1]), bool(x[0, 1])",
    "list(x), len(x), 3.0 in x",
    "f'{x[0, 0]:.3f}'",
    "m.Size([1, 2]) + (3,), m.Size([1, 2])[1:], m.Size([2, 3]).numel()",
    "m.device('cuda', 1), m.device('cpu').type, m.device('cuda:0').index",
    "m.float32, m.channels_last, m.strided, m.float32.to_complex()",
    "m.finfo(m.bfloat16), m.finfo(), m.iinfo(m.int8), m.finfo(m.float16).resolution",
    "m.finfo(m.float64).eps, m.finfo(m.float32).smallest_normal",
    "m.promote_types(m.int8, m.uint8), m.can_cast(m.float32, m.int32)",
    "m.is_tensor(x), m.is_floating_point(x), x.is_complex()",
    "x.new_tensor([1, 2])",
    "m.broadcast_shapes((2, 1), (3,), 1)",
]


@pytest.mark.parametrize("expression", RIGHT)
def test_value_is_pytorchs(torch, expression):
    def text(module) -> str:
        x = module.tensor([[1.0, 2.0], [3.0, 4.0]])
        return repr(eval(expression, {"m": module, "x": x}))

    assert text(taeda).replace("taeda.", "torch.") == text(torch)


def test_deprecated_order_warns():
    x = taeda.zeros(2)
    taeda.set_warn_always(True)  # another test may have had the one warning
    try:
        with pytest.warns(UserWarning, match="This overload of add is deprecated"):
            assert taeda.add(x, 2, x + 1).tolist() == [2.0, 2.0]
    finally:
        taeda.set_warn_always(False)


def test_out_is_returned():
    out = taeda.zeros(2)
    assert taeda.exp(taeda.zeros(2), out=out) is out
    assert out.tolist() == [1.0, 1.0]


def test_inplace_returns_self():
    x = taeda.zeros(2)
    assert x.add_(1) is x
    y = x
    y += 1
    assert y is x and x.tolist() == [2.0, 2.0]


def test_method_takes_no_out():
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        taeda.zeros(2).exp(out=taeda.zeros(2))


def test_as_tensor_takes_dtype_and_device_by_position() -> None:
    made = taeda.as_tensor([1, 2], taeda.float64, "cpu")
    assert made.dtype is taeda.float64 and made.device.type == "cpu"
    assert taeda.as_tensor([1], device="cpu", dtype=taeda.int8).dtype is taeda.int8
    with pytest.raises(TypeError):
        taeda.as_tensor([1], requires_grad=True)


def test_none_stands_for_an_empty_list_that_is_the_default():
    x = taeda.arange(4.0).reshape(1, 2, 2)
    assert taeda.amax(x, dim=None).item() == x.amax(None).item() == 3
    assert taeda.roll(x, 1, None).flatten().tolist() == [3, 0, 1, 2]
    assert taeda._C._nn.avg_pool2d(x, 2, None).item() == 1.5


@pytest.mark.parametrize("value", [5, 2.5, True, 2**40])
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.int64, taeda.bool])
def test_copy_takes_a_number(value, dtype):
    wanted = taeda.zeros(2, dtype=dtype).copy_(taeda.tensor(value))
    assert taeda.equal(taeda.zeros(2, dtype=dtype).copy_(value), wanted)
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        taeda.zeros(2).copy_([1, 2])
