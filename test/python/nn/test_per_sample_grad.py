"""nn.utils._per_sample_grad: gradients of each sample, against one sample at a time."""

from __future__ import annotations

import pytest
import taeda
from taeda import nn
from taeda.nn.utils._expanded_weights import ExpandedWeight
from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads
from tolerance import rounding

BATCH = 4
MODELS = {
    "linear": lambda: nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2, bias=False)),
    "embedding": lambda: nn.Embedding(6, 3, padding_idx=1, max_norm=1.0),
    "conv1d": lambda: nn.Conv1d(2, 3, 3, dilation=2),
    "conv2d": lambda: nn.Conv2d(2, 4, 3, padding="same", groups=2),
    "conv3d": lambda: nn.Conv3d(1, 2, 2, stride=2),
    "norms": lambda: nn.Sequential(
        nn.GroupNorm(2, 4),
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
        nn.LayerNorm(5),
    ),
}
SHAPES = {
    "linear": (2, 3), "conv1d": (2, 8), "conv2d": (2, 5, 5), "conv3d": (1, 4, 4, 4),
    "norms": (4, 5),
}  # fmt: skip


def _input(name: str):
    if name == "embedding":
        return taeda.randint(0, 6, (BATCH, 5))
    return taeda.randn(BATCH, *SHAPES[name], dtype=taeda.float64)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODELS)
def test_as_one_sample_at_a_time(name, reduction):
    taeda.manual_seed(0)
    model = MODELS[name]().double()
    x = _input(name)
    x.requires_grad_(x.is_floating_point())
    losses = call_for_per_sample_grads(model, loss_reduction=reduction)(x)
    losses = losses.square().flatten(1).sum(1)
    (losses.sum() if reduction == "sum" else losses.mean()).backward()
    assert all(p.grad is None for p in model.parameters())
    scale = 1 if reduction == "sum" else BATCH
    for i in range(BATCH):
        one = x.detach()[i : i + 1].requires_grad_(x.requires_grad)
        model.zero_grad()
        model(one).square().sum().backward()
        pairs = [(p.grad_sample[i], p.grad) for p in model.parameters()]
        if x.requires_grad:
            pairs.append((x.grad[i : i + 1] * scale, one.grad))
        for found, expected in pairs:
            error = rounding("float64", 1000)  # sums of some hundreds of terms
            assert taeda.allclose(found, expected, rtol=error, atol=error)


def test_frozen_parameters_have_none():
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    call_for_per_sample_grads(model)(taeda.ones(3, 2)).sum().backward()
    assert tuple(model.weight.grad_sample.shape) == (3, 2, 2)
    assert not hasattr(model.bias, "grad_sample")
    with pytest.raises(RuntimeError, match="clearing gradients"):
        call_for_per_sample_grads(model)


def test_refusals():
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="batch size 3 and one with batch size 4"):
        call_for_per_sample_grads(model)(taeda.ones(3, 2), taeda.ones(4, 2))
    with pytest.raises(RuntimeError, match="to have batch size matching input"):
        call_for_per_sample_grads(model, batch_size=2)(taeda.ones(3, 2))
    with pytest.raises(RuntimeError, match="Input does not have a batch dimension"):
        call_for_per_sample_grads(model)(taeda.ones(2))
    with pytest.raises(RuntimeError, match="sum or mean, got max"):
        call_for_per_sample_grads(model, loss_reduction="max")
    with pytest.raises(RuntimeError, match="cannot handle function add"):
        taeda.add(taeda.ones(2), ExpandedWeight(model.bias, 2, "sum"))
    with pytest.raises(RuntimeError, match="mixture of ExpandedWeight"):
        weight = ExpandedWeight(model.weight, 3, "sum")
        nn.functional.linear(taeda.ones(3, 2), weight, model.bias).sum().backward()
    with pytest.raises(RuntimeError, match="cannot handle function lstm"):
        call_for_per_sample_grads(nn.LSTM(2, 2))(taeda.ones(3, 1, 2))
