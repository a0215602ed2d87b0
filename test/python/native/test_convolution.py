"""Convolutions of 16-bit tensors, and how gradients lie in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import taeda

OPINFO = Path(__file__).resolve().parents[2] / "opinfo"
PROGRAM = """
import sys
import numpy as np
import taeda
from tolerance import EPSILON, rounding

rng = np.random.default_rng(0)
def values(*shape):
    t = taeda.from_numpy(rng.standard_normal(shape).astype("float32"))
    return t.to(getattr(taeda, sys.argv[1]))
x, w, g = values(2, 16, 9, 9), values(8, 16, 3, 3), values(2, 8, 7, 7)
found = []
for dtype in (x.dtype, taeda.float32):
    a, b = (t.detach().to(dtype).requires_grad_() for t in (x, w))
    out = taeda.nn.functional.conv2d(a, b)
    out.backward(g.to(dtype))
    parts = (out.detach(), a.grad, b.grad)
    found.append([t.to(x.dtype).float().numpy() for t in parts])
for have, right in zip(*found):
    # Both are the same sums of at most 144 terms below 16, in another order, rounded
    # once: to neighbours at worst.
    error = 16 * rounding("float32", 144)
    np.testing.assert_allclose(have, right, rtol=EPSILON[sys.argv[1]], atol=error)
"""


@pytest.mark.parametrize("level", ["default", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_once_at_each_level(dtype, level):
    subprocess.run(
        [sys.executable, "-c", PROGRAM, dtype],
        env={
            **os.environ,
            "TAEDA_CPU_CAPABILITY": level,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(OPINFO)]),
        },
        check=True,
    )


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradient_to_differentiate_lies_in_order(transposed, groups):
    kind = taeda.nn.ConvTranspose2d if transposed else taeda.nn.Conv2d
    layer = kind(4, 6, (3, 2), stride=2, groups=groups)
    out = layer(taeda.randn(2, 4, 7, 7))
    weights = taeda.ones_like(out).requires_grad_()
    (found,) = taeda.autograd.grad(out, layer.weight, weights, create_graph=True)
    assert found.shape == layer.weight.shape and found.is_contiguous()
    assert found.view(-1).requires_grad
