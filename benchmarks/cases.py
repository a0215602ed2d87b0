"""The case table of `run.py`.

A case is a set-up, run once, and a statement that is timed; both see the library as
`T`, and `nn`, `F`. Inputs come from NumPy, so that both libraries compute the same.
"""

from __future__ import annotations

from linalg_cases import LINALG, LINALG_BACKWARD
from transform_cases import TRANSFORMS

SETUP = """
import numpy
nn, F = T.nn, T.nn.functional
random = numpy.random.default_rng(0)
def rand(*shape, grad=False):
    array = random.standard_normal(shape, dtype="float32")
    return T.from_numpy(array).requires_grad_(grad)
def ints(high, *shape):
    return T.from_numpy(random.integers(0, high, shape))
"""

_CALLS = {
    "add": ("a, b = rand(1), rand(1)", "a + b"),
    "add_grad": ("a, b = rand(1, grad=True), rand(1)", "a + b"),
    "matmul": ("a, b = rand(8, 8), rand(8, 8)", "a @ b"),
    "view": ("a = rand(8, 8)", "a.view(64)"),
    "index": ("a = rand(8, 8)", "a[1:4, 2]"),
    "sum": ("a = rand(8, 8)", "a.sum()"),
    "zeros": ("", "T.zeros(4, 4)"),
    "linear": ("m, x = nn.Linear(8, 8), rand(2, 8)", "m(x)"),
    "backward": ("a = rand(8, grad=True)", "(a * a).sum().backward()"),
    "adam_50": (
        "ps = [rand(8, grad=True) for _ in range(50)]\n"
        "for p in ps: p.grad = p.detach()\n"
        "o = T.optim.Adam(ps)",
        "o.step()",
    ),
}
_OPERATORS = {
    "exp": ("x = rand(1 << 20)", "x.exp()"),
    "tanh": ("x = rand(1 << 20)", "x.tanh()"),
    "gelu": ("x = rand(1 << 20)", "F.gelu(x)"),
    "where": ("x, y = rand(1 << 20), rand(1 << 20); m = x > 0", "T.where(m, x, y)"),
    "sum_rows": ("x = rand(1024, 1024)", "x.sum(1)"),
    "softmax": ("x = rand(1024, 1024)", "x.softmax(1)"),
    "layer_norm": ("x = rand(1024, 768)", "F.layer_norm(x, (768,))"),
    "transpose": ("x = rand(2048, 2048)", "x.t().contiguous()"),
    "gather": ("x = rand(1024, 1024); i = ints(1024, 1024, 256)", "x.gather(1, i)"),
    "sort": ("x = rand(128, 4096)", "x.sort(1)"),
    "matmul_512": ("a, b = rand(512, 512), rand(512, 512)", "a @ b"),
    "conv2d": (
        "c, x = nn.Conv2d(64, 64, 3, padding=1), rand(4, 64, 28, 28)",
        "c(x).sum().backward()",
    ),
    "attention": (
        "q, k, v = (rand(4, 6, 128, 32) for _ in range(3))",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    ),
    "lstm": ("m, x = nn.LSTM(64, 64), rand(16, 8, 64)", "m(x)[0].sum().backward()"),
}

_STEP = """
o = T.optim.AdamW(m.parameters(), lr=1e-3)
def step():
    loss = F.cross_entropy(m(x), y)
    o.zero_grad()
    loss.backward()
    o.step()
"""
_TRAINING = {
    "mlp": (
        "m = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))\n"
        "x, y = rand(64, 784), ints(10, 64)" + _STEP,
        "step()",
    ),
    "cnn": (
        "m = nn.Sequential(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),\n"
        "  nn.Conv2d(32, 64, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),\n"
        "  nn.Linear(1024, 10))\n"
        "x, y = rand(32, 1, 14, 14), ints(10, 32)" + _STEP,
        "step()",
    ),
    "transformer": (
        "class M(nn.Module):\n"
        "  def __init__(self):\n"
        "    super().__init__()\n"
        "    self.e = nn.Embedding(96, 96)\n"
        "    layer = nn.TransformerEncoderLayer(96, 4, 384, 0.0, batch_first=True)\n"
        "    self.t = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)\n"
        "    self.h = nn.Linear(96, 96)\n"
        "  def forward(self, x): return self.h(self.t(self.e(x))).flatten(0, 1)\n"
        "m = M()\n"
        "x, y = ints(96, 16, 64), ints(96, 16 * 64)" + _STEP,
        "step()",
    ),
}

# group -> name -> (set-up, statement)
CASES = {"call": _CALLS, "operator": _OPERATORS, "training": _TRAINING}
# Long tables, measured when they are named.
MORE_CASES = {
    "linalg": LINALG,
    "linalg_backward": LINALG_BACKWARD,
    "transform": TRANSFORMS,
}
