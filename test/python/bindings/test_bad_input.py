"""Bad input is refused with PyTorch's kind of error before memory is touched."""

from __future__ import annotations

import pytest
import taeda

HUGE = 2**62
F = "m.nn.functional."

# What programs and people look for in the message, by expression.
PHRASES = {
    "m.ones(2) + m.ones(3)": "size of tensor a (2) must match the size of tensor b (3)",
    "m.ones(2, 3) @ m.ones(2, 3)": "shapes cannot be multiplied (2x3 and 2x3)",
    "m.mm(m.ones(2, 3), m.ones(3, 2).double())": "dtype",
    "m.mm(m.ones(2, 3), m.ones(2))": "must be a matrix",
    F + "linear(m.ones(2, 3), m.ones(4, 4))": "shapes cannot be multiplied",
    F + "conv2d(m.ones(1, 3, 4, 4), m.ones(2, 2, 3, 3))": "channels",
    F + "conv2d(m.ones(1, 3, 2, 2), m.ones(2, 3, 3, 3))": "Kernel size",
    F + "conv2d(m.ones(1, 3, 4, 4), m.ones(2, 3, 3, 3), stride=0)": "stride",
    F + "embedding(m.tensor([5]), m.ones(3, 2))": "index out of range in self",
    F + "embedding(m.tensor([1.0]), m.ones(3, 2))": "scalar type",
    F + "cross_entropy(m.ones(2, 3), m.tensor([0, 3]))": "out of bounds",
    F + "cross_entropy(m.ones(2, 3), m.tensor([0, 1, 2]))": "batch_size (2)",
    F + "nll_loss(m.ones(2, 3), m.tensor([0, -1]))": "out of bounds",
    F + "layer_norm(m.ones(2, 3), (4,))": "normalized_shape",
    F + "batch_norm(m.ones(1, 3), None, None, training=True)": "more than 1 value",
    F + "max_pool2d(m.ones(1, 1, 2, 2), 3)": "too small",
    F + "dropout(m.ones(2), 1.5)": "between 0 and 1",
    "m.nn.Linear(2, 2)(m.ones(3))": "",
    "m.add()": "expected (Tensor input, Tensor other",
    "m.ones(2).sum(1, 2, 3, 4)": "expected one of",
    "m.ones(2)[2]": "index 2 is out of bounds for dimension 0 with size 2",
    "m.ones(2, 3)[0, 3]": "index 3 is out of bounds for dimension 1 with size 3",
    "m.ones(2)[0, 0]": "too many indices",
    "m.ones(2)[m.tensor([2])]": "out of bounds",
    "m.ones(2)[m.tensor([True])]": "does not match",
    "m.ones(()) [0]": "invalid index of a 0-dim tensor",
    "m.ones(2, 3).sum(2)": "Dimension out of range",
    "m.ones(2, 3).sum((0, 0))": "appears multiple times",
    "m.ones(2, 3).transpose(0, 2)": "expected to be in range of [-2, 1], but got 2",
    "m.ones(2, 3).view(4)": "shape '[4]' is invalid for input of size 6",
    "m.ones(2, 3).t().view(6)": "not compatible",
    "m.ones(2, 3).reshape(-1, -1)": "only one dimension can be inferred",
    "m.ones(2, 3).expand(3, 3)": "must match the existing size",
    "m.ones(2, 3).index_select(0, m.tensor([2]))": "out of range",
    "m.ones(2, 3).gather(0, m.tensor([[2, 0, 0]]))": "out of bounds",
    "m.ones(2, 3).scatter(0, m.tensor([[2, 0, 0]]), 1.0)": "out of bounds",
    "m.cat([m.ones(2, 3), m.ones(2, 2)])": "Sizes of tensors must match",
    "m.stack([m.ones(2), m.ones(3)])": "equal size",
    f"m.zeros({HUGE})": "overflow",
    f"m.zeros({HUGE}, 4)": "overflow",
    "m.zeros(2**40, 2**40)": "overflow",
    "m.zeros(-1)": "negative dimension -1",
    "m.ones(2, -3)": "negative dimension -3",
    f"m.randn({HUGE})": "overflow",
    f"m.randn({HUGE}, {HUGE}, out=m.empty(0))": "overflow",
    f"m.eye({HUGE}, out=m.empty(0))": "overflow",
    "m.triu_indices(2, 2**63 - 1)": "overflow",
    "m._foreach_norm([m.ones(7)], 2, dtype=m.int32)": "floating point or complex",
    "m.tril_indices(2**40, 2**40)": "overflow",
    "m._convert_indices_from_coo_to_csr(m.tensor([0]), 2**63 - 1)": "overflow",
    "m.ops.aten.value_selecting_reduction_backward("
    "m.ones(1), 0, m.tensor([7]), [3], True)": "out of bounds",
    f"m.arange(0, {HUGE})": "",
    "m.arange(0, 1, -1)": "upper bound and lower bound inconsistent with step sign",
    f"m.ones(1).expand({HUGE}, 4)": "overflow",
    f"m.ones(1).expand({HUGE}).contiguous()": "overflow",
    f"m.ones(1).repeat({HUGE})": "overflow",
    f"m.ones(2).resize_({HUGE})": "overflow",
    f"m.ones(2).as_strided((2,), ({HUGE},))": "overflow",
    "m.ones(2).as_strided((2,), (1,), -1)": "storage_offset",
    "m.ones(2).as_strided((3,), (1,))": "out of bounds",
    "m.ones(2).item()": "2 elements cannot be converted to Scalar",
    "bool(m.ones(2))": "ambiguous",
    "m.ones(0).max()": "numel() == 0",
    "m.ones(2).long().mean()": "",
    "m.ones(2).long().div_(2)": "can't be cast to the desired output type",
    "m.tensor([1]) // m.tensor([0])": "ZeroDivisionError",
    "m.add(m.ones(2), 1, out=m.ones(2).long())": "can't be cast",
    "m.add(m.ones(2), 1, out=m.ones(1).expand(2))": "single memory location",
    "m.ones(1).expand(3).add_(1)": "single memory location",
    "(lambda x: x[1:].copy_(x[:-1]))(m.arange(6.0))": "single memory location",
    "(lambda x: m.add(x[1:], 1, out=x[:-1]))(m.arange(4.0))": "single memory location",
    "m.tensor([1], requires_grad=True)": "floating point and complex dtype",
    "m.ones(2, dtype=m.long).requires_grad_()": "floating point and complex dtype",
    "m.nn.Parameter(m.ones(2).long())": "floating point and complex dtype",
    "m.ones(2, requires_grad=True).add_(1)": "a leaf Variable that requires grad",
    "m.ones(2, requires_grad=True)[0].add_(1)": "a view of a leaf Variable",
    "m.ones(2, requires_grad=True).resize_(3)": "cannot resize variables",
    "m.ones(2, requires_grad=True).numpy()": "detach().numpy()",
    "(m.ones(2, requires_grad=True) * 2).backward()": "only for scalar outputs",
    "m.ones(2).sum().backward()": "does not require grad",
    "setattr(m.ones(2), 'grad', m.ones(3))": "attempting to assign a gradient of size",
    "m.multinomial(m.ones(2), 3)": "replacement",
    "m.normal(0.0, -1.0, (2,))": "std >= 0",
    "m.nn.Linear(2, 2).load_state_dict({})": "Missing key(s)",
    "m.nn.MultiheadAttention(5, 2)": "divisible",
    "m.optim.SGD([], 0.1)": "empty parameter list",
    "m.optim.SGD([m.ones(2, requires_grad=True)], lr=-1)": "Invalid learning rate",
    "m.utils.data.DataLoader([1], batch_size=0)": "batch_size",
}


def outcome(expression: str, module) -> tuple[str, str]:
    try:
        eval(expression, {"m": module})
    except Exception as error:
        return type(error).__name__, f"{type(error).__name__}: {error}"
    return "no error", ""


@pytest.mark.parametrize("expression", PHRASES)
def test_refused_as_by_pytorch(torch, expression) -> None:
    ours, text = outcome(expression, taeda)
    theirs, their_text = outcome(expression, torch)
    assert theirs != "no error" and ours == theirs, text
    phrase = PHRASES[expression]
    assert phrase.lower() in text.lower(), their_text


def test_an_operator_refuses_cuda_where_there_is_none() -> None:
    if taeda.cuda.is_available():
        return
    for make in (lambda: taeda.ones(2, device="cuda"), taeda.ones(2).cuda):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            make()


def shrunk(nbytes: int):
    x = taeda.arange(6.0)
    x.untyped_storage().resize_(nbytes)
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.sum(),
        lambda x: x + 1,
        lambda x: x.add_(1),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: x[5].item(),
        repr,
        lambda x: x.copy_(taeda.zeros(6)),
        lambda x: x.sort(),
        lambda x: taeda.cat([x, x]),
        lambda x: x.matmul(x),
    ],
)
@pytest.mark.parametrize("nbytes", [0, 4, 23])
def test_a_tensor_whose_storage_was_cut_is_not_read(use, nbytes) -> None:
    with pytest.raises(RuntimeError, match=f"needs 2\\d bytes.*resized to {nbytes}"):
        use(shrunk(nbytes))


def test_a_cut_storage_may_grow_again() -> None:
    x = shrunk(0)
    assert x.data_ptr() == 0 and x[:0].tolist() == []
    x.untyped_storage().resize_(24)
    assert x.fill_(2.0).tolist() == [2.0] * 6
    y = taeda.arange(6.0)
    view = y[:2]
    y.untyped_storage().resize_(8)
    assert view.tolist() == [0.0, 1.0]


def test_resize_keeps_views_readable() -> None:
    x = taeda.arange(6.0)
    view = x.view(2, 3)
    x.resize_(0)
    assert view.sum().item() == 15.0 and x.tolist() == []
    x.resize_(3)
    assert x.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
def test_empty_and_0d_tensors_pass_through(torch, shape) -> None:
    for call in (
        lambda m, x: (x * 2 + x.exp()).sum(),
        lambda m, x: m.cat([x.reshape(-1), x.reshape(-1)]),
        lambda m, x: x.softmax(-1),
        lambda m, x: x.reshape(-1).sort().values,
        lambda m, x: m.where(x > 0, x, -x),
        lambda m, x: x.mean(),
        lambda m, x: x.reshape(-1) @ x.reshape(-1),
    ):
        ours, theirs = (call(m, m.ones(shape)) for m in (taeda, torch))
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert repr(ours.tolist()) == repr(theirs.tolist())


def test_what_is_not_a_number_passes_through(torch) -> None:
    values = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0]
    for name in "exp log sqrt sigmoid tanh relu abs sign floor isnan isinf".split():
        ours, theirs = (getattr(m, name)(m.tensor(values)) for m in (taeda, torch))
        assert repr(ours.tolist()) == repr(theirs.tolist()), name
    for name in "sum mean prod max min argmax std cumsum".split():
        args = (0,) if name == "cumsum" else ()
        ours, theirs = (getattr(m.tensor(values), name)(*args) for m in (taeda, torch))
        assert repr(ours.tolist()) == repr(theirs.tolist()), name
