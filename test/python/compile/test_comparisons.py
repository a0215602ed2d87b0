"""What a derivative compares is compared once, where the forward pass made it."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import taeda

def program(a):
    x = taeda.addcmul(a, a, a, value=-1.5)
    most = x.amax(1, keepdim=True)
    return ((most + taeda.addcmul(a, x, a, value=2)).abs() + 1).log()

function = taeda.compile(program, dynamic=False)
for count in (3, 8, 20):
    x = taeda.randn(count, 1, dtype=taeda.float64)
    here, there = (x.clone().requires_grad_() for _ in range(2))
    program(here).sum().backward()
    function(there).sum().backward()
    assert taeda.allclose(here.grad, there.grad), (here.grad, there.grad)
"""


def test_a_maximum_is_equal_to_its_elements() -> None:
    """Before a kernel is there, other code makes the elements again."""
    environment = os.environ | {"TAEDA_CXX": "/nonexistent"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
