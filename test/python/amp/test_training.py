"""Training in bfloat16 and float16 on the CPU reaches the loss of float32."""

from __future__ import annotations

import contextlib

import pytest
import taeda
from taeda import nn
from taeda.nn import functional as F

LOW = ("bfloat16", "float16")


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = 4
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, steps, width = x.shape
        shape = (batch, steps, self.heads, width // self.heads)
        parts = self.qkv(self.norms[0](x)).split(width, dim=2)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, steps, width))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, letters: int, steps: int, width: int = 32) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(steps, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, text):
        x = self.letters(text) + self.places(taeda.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 4),
        )

    def forward(self, image):
        return self.layers(image)


def gpt_batches(steps: int):
    """Counting up by 1, 2 or 3 modulo 16, with noise that keeps the loss above 0."""
    for _ in range(steps):
        start, stride = taeda.randint(0, 16, (16, 1)), taeda.randint(1, 4, (16, 1))
        text = (start + stride * taeda.arange(17)) % 16
        noise = taeda.rand(16, 17) < 0.1
        text = taeda.where(noise, taeda.randint(0, 16, (16, 17)), text)
        yield text[:, :-1], text[:, 1:]


def cnn_batches(steps: int):
    """Which quarter of a noisy image is the bright one."""
    for _ in range(steps):
        quarter = taeda.randint(0, 4, (32,))
        image = taeda.randn(32, 1, 12, 12)
        for i, q in enumerate(quarter.tolist()):
            row, column = 6 * (q // 2), 6 * (q % 2)
            image[i, 0, row : row + 6, column : column + 6] += 0.4
        yield image, quarter


def final_loss(model: str, low: str | None) -> float:
    """The mean loss of the last fifth of the training."""
    taeda.manual_seed(0)
    net = Gpt(16, 16) if model == "gpt" else Cnn()
    steps = 120 if model == "gpt" else 100
    batches = gpt_batches(steps) if model == "gpt" else cnn_batches(steps)
    optimizer = taeda.optim.AdamW(net.parameters(), lr=3e-3)
    scaler = taeda.amp.GradScaler("cpu", enabled=low == "float16")
    losses = []
    for inputs, targets in batches:
        scope = contextlib.nullcontext()
        if low is not None:
            scope = taeda.autocast("cpu", getattr(taeda, low))
        optimizer.zero_grad()
        with scope:
            out = net(inputs)
            assert str(out.dtype) == f"taeda.{low or 'float32'}"
            loss = F.cross_entropy(out.flatten(0, -2), targets.flatten())
        assert loss.dtype == taeda.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    tail = losses[-steps // 5 :]
    assert sum(tail) / len(tail) < 0.75 * losses[0]
    return sum(tail) / len(tail)


@pytest.mark.parametrize("model", ["gpt", "cnn"])
def test_small_dtypes_reach_the_loss_of_float32(model):
    expected = final_loss(model, None)
    for low in LOW:
        found = final_loss(model, low)
        print(f"{model}: float32 {expected:.4f}, {low} {found:.4f}")
        assert abs(found - expected) <= 0.01 * expected
