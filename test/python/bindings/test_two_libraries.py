"""Taeda and PyTorch in one process, in both import orders, with threads on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

WORK = """
import os, threading
import numpy as np

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 300))
IMAGE, WEIGHT = rng.normal(size=(2, 8, 40, 40)), rng.normal(size=(16, 8, 3, 3))
LONG = rng.normal(size=3_000_000)

def convolved():
    windows = np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, WEIGHT, optimize=True)

PRODUCT, CONVOLVED = A @ A, convolved()

def near(got, want, error):
    apart = np.abs(got.detach().numpy() - want)
    limit = error * np.abs(want).max()
    report = type(got), got.dtype, apart.max(), limit, (apart > limit).sum()
    assert apart.max() <= limit, report

def check(T):
    for dtype, error in ((T.float64, 1e-12), (T.float32, 1e-5)):
        def tensor(x):
            return T.tensor(x, dtype=dtype)
        a = tensor(A).requires_grad_()
        product = a @ a
        near(product, PRODUCT, error)
        product.sum().backward()
        near(a.grad, A.sum(1)[None, :] + A.sum(0)[:, None], 10 * error)
        conv = T.nn.functional.conv2d(tensor(IMAGE), tensor(WEIGHT))
        near(conv, CONVOLVED, error)
        logs = (tensor(LONG) * 2).exp().log() / 2
        near(logs, LONG, 100 * error)
        near(logs.sum(), LONG.sum(), 100 * error)
        near(tensor(LONG).sort().values, np.sort(LONG), error)

def check_all(libraries):
    for T in libraries:
        check(T)

def in_child(libraries):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            check_all(libraries)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

TOGETHER = """
import {first}
import {second}
libraries = [{first}, {second}]
for T in libraries:
    T.set_num_threads(2)
check_all(libraries)
check_all(libraries[::-1])
failed = []
def user(T):
    try:
        check(T)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=user, args=(T,)) for T in libraries]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
# PyTorch's products may wait for threads that a child of a fork does not have.
in_child([taeda])
check_all(libraries)
x = taeda.from_dlpack(torch.arange(3.0)) + 1
assert torch.from_dlpack(x).tolist() == [1.0, 2.0, 3.0]
assert {first}.Tensor is not {second}.Tensor
"""

ALONE = """
import sys
import taeda
taeda.set_num_threads(2)
check(taeda)
in_child([taeda])
loaded = {{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}}
assert any("libtaeda" in path for path in loaded), loaded
assert not [path for path in loaded if "/torch/" in path]
assert not [path for path in loaded if os.path.basename(path).startswith("libtorch")]
assert "torch" not in sys.modules
gomp = {{path for path in loaded if "libgomp" in path}}
assert len(gomp) <= 1, gomp
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WORK + program)],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("first", ["taeda", "torch"])
def test_both_compute_right_results(first: str) -> None:
    second = "torch" if first == "taeda" else "taeda"
    run(TOGETHER.format(first=first, second=second))


def test_taeda_loads_nothing_of_torch() -> None:
    run(ALONE.format())
