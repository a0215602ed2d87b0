"""What compiled training steps hold for the backward pass."""

from __future__ import annotations

import pytest
import taeda
from taeda import _C, nn


def memory(module, x) -> tuple[int, int]:
    """Bytes held after the forward pass, and at most in the backward pass."""
    for _ in range(2):
        before = _C._cpu_memory()[0]
        loss = module(x).square().mean()
        held = _C._cpu_memory()[0] - before
        _C._reset_cpu_peak()
        loss.backward()
        peak = _C._cpu_memory()[1] - before
        for p in module.parameters():
            p.grad = None
        del loss
    return held, peak


def layers(activation, count: int):
    rows = [
        (nn.Linear(32, 128), activation(), nn.Linear(128, 32)) for _ in range(count)
    ]
    return nn.Sequential(*(layer for row in rows for layer in row))


@pytest.mark.parametrize(
    ("activation", "share"), [(nn.GELU, 0.7), (nn.SiLU, 0.7), (nn.ReLU, 1.0)]
)
def test_activations_before_products_are_not_saved_beside_their_inputs(
    activation, share
) -> None:
    module, x = layers(activation, 8), taeda.randn(256, 32)
    held, peak = memory(module, x)
    compiled = taeda.compile(module, options={"blocking": True}, fullgraph=True)
    compiled_held, compiled_peak = memory(compiled, x)
    assert compiled_held <= share * held
    # What is made again is made when it is read, not all at once.
    assert compiled_peak <= (share + 0.1) * peak


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(64, 64)

    def forward(self, x):
        return x + self.one(x).cos()


def test_of_equally_large_values_the_last_ones_are_saved() -> None:
    # Else a backward pass would add up all residuals from the first one on.
    module, x = nn.Sequential(*(Residual() for _ in range(12))), taeda.randn(256, 64)
    _, peak = memory(module, x)
    compiled = taeda.compile(module, options={"blocking": True}, fullgraph=True)
    assert memory(compiled, x)[1] <= 1.02 * peak
