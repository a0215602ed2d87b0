"""Gradients of each sample, held to one backward pass a sample."""

from __future__ import annotations

import pytest
import taeda
from taeda import nn
from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads as per_sample

MODELS = {
    "linear": lambda: (nn.Linear(3, 2), taeda.randn(4, 3)),
    "deep": lambda: (nn.Linear(3, 2), taeda.randn(4, 2, 5, 3)),
    "conv": lambda: (
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.GroupNorm(3, 3), nn.Flatten()),
        taeda.randn(4, 2, 5, 5),
    ),
    "embedding": lambda: (nn.Embedding(6, 3), taeda.randint(6, (4, 2))),
}


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODELS)
def test_each_sample_has_its_gradient(name: str, reduction: str) -> None:
    taeda.manual_seed(0)
    model, x = MODELS[name]()
    out = per_sample(model, loss_reduction=reduction)(x)
    assert taeda.allclose(out, model(x), atol=1e-6)
    loss = (out**2).flatten(1).sum(1)
    getattr(loss, reduction)().backward()
    for i, sample in enumerate(x.split(1)):
        wanted = taeda.autograd.grad((model(sample) ** 2).sum(), model.parameters())
        for p, grad in zip(model.parameters(), wanted, strict=True):
            assert p.grad is None
            taeda.testing.assert_close(p.grad_sample[i], grad, rtol=1e-4, atol=1e-5)


def test_a_batch_in_the_second_dim_and_common_tensors() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(3, 2)

        def forward(self, x, factor):
            return self.line(x) * factor

    model, x, factor = Weighted(), taeda.randn(5, 4, 3), taeda.randn(2)
    call = per_sample(model, batch_size=4, batch_first=False)
    call(x, factor=factor).sum().backward()
    wanted = factor.repeat(4, 1) * 5
    taeda.testing.assert_close(model.line.bias.grad_sample, wanted)


def test_what_is_refused() -> None:
    layer, x = nn.Linear(3, 2), taeda.randn(4, 3)
    with pytest.raises(RuntimeError, match="must be nn.Module, got str"):
        per_sample("layer")
    with pytest.raises(RuntimeError, match="None or an integer, got float"):
        per_sample(layer, batch_size=6.4)
    with pytest.raises(RuntimeError, match="must be positive, got -64"):
        per_sample(layer, batch_size=-64)
    with pytest.raises(RuntimeError, match="to be sum or mean, got none"):
        per_sample(layer, loss_reduction="none")
    with pytest.raises(RuntimeError, match="batch size 3 and one with batch size 4"):
        per_sample(nn.Bilinear(3, 3, 1))(x, x[:3])
    with pytest.raises(RuntimeError, match="samples along dim 0, got"):
        per_sample(nn.Sequential(layer, nn.Flatten(0)))(x)
    per_sample(layer)(x).sum().backward()
    with pytest.raises(RuntimeError, match="weight has a grad_sample from an earlier"):
        per_sample(layer)
