"""Models and helpers of the tests of compiled backward passes."""

from __future__ import annotations

import taeda
from taeda import nn
from taeda._dynamo import compiled_autograd
from taeda._dynamo.utils import counters

F = nn.functional
# Graphs keep floats between calls where eager passes round to 16 bits: one place.
BOUNDS = {taeda.bfloat16: 2.0**-7}


def as_it_is(gm):
    return gm


def by_default(gm):
    return taeda.compile(gm)


WAYS = {
    "native": (None, False),
    "native_dynamic": (None, True),
    "module": (as_it_is, False),
    "module_dynamic": (as_it_is, True),
    "module_compiled": (by_default, False),
}


def same(a, b) -> bool:
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if not taeda.is_tensor(a):
        return a == b
    return (
        taeda.is_tensor(b)
        and a.dtype == b.dtype
        and a.stride() == b.stride()
        and taeda.allclose(a, b, rtol=BOUNDS.get(a.dtype, 2e-5), atol=1e-6)
    )


def runs(function, times=3):
    found = []
    for i in range(times):
        taeda.manual_seed(i)
        found.append(function(i))
    return found


def compare(function, way, times=3):
    """`function(i)` runs passes and returns what they leave behind."""
    want = runs(function, times)
    with compiled_autograd._enable(way[0], dynamic=way[1]):
        found = runs(function, times)
    assert same(found, want), (found, want)


def captures() -> int:
    return counters["compiled_autograd"]["captures"]


def graphs() -> int:
    return counters["compiled_autograd"]["compiles"]


def leaf(*shape, dtype=None):
    return taeda.randn(*shape, dtype=dtype).requires_grad_()


def grads_of(*leaves):
    return [None if x.grad is None else x.grad.clone() for x in leaves]


def step(model, *inputs):
    """The gradients of a model's parameters and floating inputs."""
    leaves = [x for x in inputs if x.is_floating_point()]
    for x in leaves:
        x.requires_grad_()
    result = model(*inputs)
    result = result[0] if isinstance(result, tuple) else result
    result.square().mean().backward()
    return grads_of(*leaves, *model.parameters())


class Block(nn.Module):
    """A block of a GPT with its embedding and head."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))

    def forward(self, tokens):
        x = self.tokens(tokens)
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 2, 4)).unbind(-3)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        x = x + self.mlp(self.norm2(x))
        return F.log_softmax(x @ self.tokens.weight.T, -1)


def images(*layers):
    return nn.Sequential(*layers), taeda.randn(2, 3, 8, 8)


MODELS = {
    "mlp": lambda: (
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)),
        taeda.randn(5, 8),
    ),
    "gpt": lambda: (Block(), taeda.randint(11, (2, 6))),
    "convolutions": lambda: images(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3),
        nn.Flatten(),
        nn.Linear(24, 3),
    ),
    "upwards": lambda: images(
        nn.ConvTranspose2d(3, 4, 2, stride=2), nn.GroupNorm(2, 4), nn.SiLU()
    ),
    "lstm": lambda: (nn.LSTM(4, 5, 2), taeda.randn(6, 3, 4)),
    "gru": lambda: (nn.GRU(4, 5, bidirectional=True), taeda.randn(6, 3, 4)),
    "transformer": lambda: (
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True),
        taeda.randn(2, 5, 8),
    ),
    "dropout": lambda: (
        nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Tanh(), nn.RMSNorm(8)),
        taeda.randn(5, 4),
    ),
}
