"""Smoke tests: under a minute, also under the address sanitizer; need no PyTorch."""

from __future__ import annotations

import pytest
import taeda


def test_values_and_types() -> None:
    x = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (x + 1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert (x @ x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert x.t()[0].tolist() == [1.0, 3.0]
    assert x.sum().item() == 10.0
    assert taeda.arange(3).dtype is taeda.int64


def test_gradients_flow_through_views_and_inplace_changes() -> None:
    x = taeda.ones(2, 3, requires_grad=True)
    y = x * 2
    y[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0, 6.0], [2.0, 2.0, 2.0]]


def test_errors_name_the_operator() -> None:
    with pytest.raises(
        RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied"
    ):
        taeda.mm(taeda.ones(2, 3), taeda.ones(2, 3))
    with pytest.raises(IndexError, match="Dimension out of range"):
        taeda.ones(2).sum(3)
    with pytest.raises(TypeError):
        taeda.add("a", 1)


def test_a_network_learns() -> None:
    taeda.manual_seed(0)
    model = taeda.nn.Sequential(
        taeda.nn.Linear(2, 16), taeda.nn.Tanh(), taeda.nn.Linear(16, 1)
    )
    x = taeda.rand(64, 2) * 2 - 1
    y = x[:, :1] * x[:, 1:]
    optimizer = taeda.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(200):
        loss = taeda.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


def test_user_operators_have_gradients() -> None:
    @taeda.library.custom_op("smoke::cube", mutates_args=())
    def cube(x: taeda.Tensor) -> taeda.Tensor:
        return x * x * x

    def setup(ctx, inputs, output) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2

    cube.register_autograd(backward, setup_context=setup)
    x = taeda.tensor([2.0], requires_grad=True)
    cube(x).backward()
    assert x.grad.tolist() == [12.0]
    assert taeda.ops.smoke.cube(taeda.tensor([3.0])).tolist() == [27.0]


def test_a_module_round_trips_through_a_file(tmp_path) -> None:
    model = taeda.nn.Linear(3, 2)
    taeda.save(model.state_dict(), tmp_path / "model.pt")
    other = taeda.nn.Linear(3, 2)
    other.load_state_dict(taeda.load(tmp_path / "model.pt"))
    assert taeda.equal(model.weight, other.weight)
