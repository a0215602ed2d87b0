"""Convolutions of 16-bit tensors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import taeda

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
    # Both are the same sums, in another order, rounded once.
    np.testing.assert_allclose(have, right, rtol=0.01, atol=1e-3)
"""


@pytest.mark.parametrize("level", ["default", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_once_at_each_level(dtype, level):
    subprocess.run(
        [sys.executable, "-c", PROGRAM, dtype],
        env={**os.environ, "TAEDA_CPU_CAPABILITY": level},
        check=True,
    )
