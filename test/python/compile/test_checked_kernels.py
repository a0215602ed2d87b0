"""`options={"check": True}`: kernels are held to the calls that they stand for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import taeda

CHECK = {"check": True}


def pointwise(x):
    return (x * 2.5).sigmoid() - x.abs().sqrt()


def rows(x):
    return (x * 2.5).softmax(-1).log().sum(0)


def specials(x):
    x = x / taeda.tensor([0.0, 1.0, -1.0, float("inf")], dtype=x.dtype)
    return (x * 2.5).exp() + x, (x - x).relu() * 3


def written(x):
    x.mul_(2.5).add_(1).tanh_()
    return x + 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("function", [pointwise, rows, specials, written])
def test_kernels_that_agree_are_not_heard_of(function, dtype) -> None:
    x = taeda.linspace(-3, 3, 32).reshape(8, 4).to(getattr(taeda, dtype))
    compiled = taeda.compile(function, options=CHECK, fullgraph=True)
    waited = taeda.compile(function, options={"blocking": True}, fullgraph=True)
    one, two = x.clone(), x.clone()
    for _ in range(2):
        given, expected = compiled(one), waited(two)
        pairs = zip(given, expected, strict=True) if type(given) is tuple else ()
        for mine, theirs in [*pairs, (one, two)]:
            assert taeda.allclose(mine, theirs, equal_nan=True)


def test_integers_and_training_steps() -> None:
    counted = taeda.compile(lambda n: (n * 3 + 1, n > 4), options=CHECK)
    assert counted(taeda.arange(8))[0].tolist() == list(range(1, 25, 3))
    module = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.GELU())
    x = taeda.randn(5, 4, requires_grad=True)
    module(x).square().sum().backward()
    expected, x.grad = x.grad, None
    taeda.compile(module, options=CHECK)(x).square().sum().backward()
    assert taeda.allclose(x.grad, expected, atol=1e-5)


WRONG = """
import taeda
from taeda._dynamo.exc import KernelDiffers

def f(x):
    return (x.sin() * {forward}).exp().sum()

x = taeda.linspace(-1, 1, 64).reshape(8, 8).requires_grad_()
compiled = taeda.compile(f, options={{"check": True}})
try:
    compiled(x).backward()
except KernelDiffers as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("forward", "wrong", "named"),
    [("2.5", "s/2[.]5/2.6/", "aten::sin("), ("2", r"s/\bcos(/sin(/", "aten::cos(")],
)
def test_the_first_kernel_that_differs_is_named(forward, wrong, named, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(
        "#!/bin/sh\n"
        'for a in "$@"; do\n'
        f'  case $a in *kernels.cpp) sed -i "{wrong}" "$a";; esac\n'
        'done\nexec c++ "$@"\n'
    )
    compiler.chmod(0o755)
    cache = {"TAEDA_CXX": str(compiler), "TAEDA_CACHE_DIR": str(tmp_path / "kernels")}
    done = subprocess.run(
        [sys.executable, "-c", WRONG.format(forward=forward)],
        env={**os.environ, **cache},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "of a kernel differs from that of its calls by" in done.stdout
    assert named in done.stdout and "\nloops:\naxes " in done.stdout
