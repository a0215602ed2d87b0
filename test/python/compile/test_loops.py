"""Kernels of the loop compiler give what eager calls give."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import loops_programs as programs
import pytest
import taeda
from taeda import _compiler

EPSILON = {
    taeda.float64: 1e-12,
    taeda.float32: 2e-5,
    taeda.float16: 2e-2,
    taeda.bfloat16: 1e-1,
}


def _fail(error: BaseException) -> None:
    raise error


def has_kernels(function) -> None:
    """Where a text does not compile, calls run instead: results would be right too."""
    for region in function.regions()[-1]:
        assert region.ready, region.code


def compiled(function):
    return _compiler.compile(function, _fail, blocking=True, on_made=has_kernels)


def regions(function) -> int:
    """How many regions the compiled function's graphs have."""
    text = "".join(part or "" for pair in function.graphs() for part in pair)
    return text.count("= region(")


def assert_close(got, expected, what: str) -> None:
    assert len(got) == len(expected), what
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        assert (g.dtype, g.shape, g.stride()) == (e.dtype, e.shape, e.stride()), what
        if not e.dtype.is_floating_point:
            assert taeda.equal(g, e), f"{what}, result {i}"
            continue
        tolerance = EPSILON[e.dtype]
        near = taeda.allclose(
            g.double(), e.double(), rtol=tolerance, atol=tolerance, equal_nan=True
        )
        worst = (g.double() - e.double()).abs().max().item()
        assert near, f"{what}, result {i}: differs by {worst}"


@pytest.mark.parametrize("dtype", programs.FLOATS, ids=str)
def test_random_float_programs(dtype):
    fused = 0
    for seed in range(12):
        program = programs.float_program(seed)
        given = programs.inputs(seed, dtype)
        function = compiled(program)
        what = f"float_program({seed}) on {dtype}"
        assert_close(function(*given), program(*given), what)
        fused += regions(function)
    assert fused >= 12


@pytest.mark.parametrize("dtype", programs.INTS, ids=str)
def test_random_integer_programs(dtype):
    fused = 0
    for seed in range(8):
        program = programs.int_program(seed)
        given = programs.inputs(seed, dtype)
        function = compiled(program)
        what = f"int_program({seed}) on {dtype}"
        assert_close(function(*given), program(*given), what)
        fused += regions(function)
    assert fused >= 4


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_kernels_of_small_integers_compile(dtype, tmp_path):
    program = PROGRAM.replace("tanh(x * y) + x", "maximum(x * y * 3, x) + y * 2")
    program = program.replace(").float() / 64, ", f").to(taeda.{dtype}), ")
    program = program.replace("ones(64)", f"ones(64).to(taeda.{dtype})")
    done = _run(program, TAEDA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("right\n", "")
    assert list(tmp_path.glob("**/*.so"))


# Faults -------------------------------------------------------------------------

PROGRAM = """
import os, sys, taeda
from taeda import _compiler

def fail(error):
    raise error

def f(x, y):
    return taeda.tanh(x * y) + x

x, y = taeda.arange(64).float() / 64, taeda.ones(64)
g = _compiler.compile(f, fail, blocking=True)
assert taeda.allclose(g(x, y), f(x, y))
assert taeda.allclose(g(x, y), f(x, y))
print("right")
"""


def _run(program: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        # From 3.12 on Python warns of every fork beside threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _script(folder: Path, text: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def _one_line(done: subprocess.CompletedProcess, words: str) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
    assert done.stderr.startswith("taeda: compile: runs without compiled kernels: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_compiler(tmp_path):
    done = _run(PROGRAM, TAEDA_CXX="no-such-compiler", TAEDA_CACHE_DIR=str(tmp_path))
    _one_line(done, "no C++ compiler")


def test_compiler_that_fails(tmp_path):
    broken = _script(tmp_path, "echo 'out of order' >&2; exit 3")
    _one_line(
        _run(PROGRAM, TAEDA_CXX=broken, TAEDA_CACHE_DIR=str(tmp_path)), "out of order"
    )


def test_regions_tell_whether_their_kernel_is_there(tmp_path):
    program = PROGRAM + "print([region.ready for region in g.regions()[0]])\n"
    done = _run(program, TAEDA_CACHE_DIR=str(tmp_path / "one"))
    assert done.stdout == "right\n[True]\n", done.stderr
    broken = _script(tmp_path, "exit 3")
    done = _run(program, TAEDA_CXX=broken, TAEDA_CACHE_DIR=str(tmp_path / "other"))
    assert done.stdout == "right\n[False]\n", done.stderr


def test_compiler_that_is_killed(tmp_path):
    killed = _script(tmp_path, "kill -9 $$")
    _one_line(
        _run(PROGRAM, TAEDA_CXX=killed, TAEDA_CACHE_DIR=str(tmp_path)), "signal 9"
    )


def test_cache_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = _run(PROGRAM, TAEDA_CACHE_DIR=str(tmp_path / "file" / "below"))
    assert (done.stdout, done.stderr) == ("right\n", "")


def test_second_process_needs_no_compiler(tmp_path):
    calls = tmp_path / "calls"
    counted = _script(tmp_path, f'echo called >> "{calls}"; exec g++ "$@"')
    for _ in range(2):
        done = _run(PROGRAM, TAEDA_CXX=counted, TAEDA_CACHE_DIR=str(tmp_path))
        assert (done.stdout, done.stderr) == ("right\n", "")
    assert calls.read_text().count("called") == 1


FORK = """
import os, taeda
from taeda import _compiler

def fail(error):
    raise error

def f(x, y):
    return taeda.tanh(x * y) + x

def h(x, y):
    return taeda.sigmoid(x - y) * x

x, y = taeda.arange(64).float() / 64, taeda.ones(64)
g = _compiler.compile(f, fail, blocking=True)
g(x, y)
child = os.fork()
if child == 0:
    made = _compiler.compile(h, fail, blocking=True)
    fine = taeda.allclose(g(x, y), f(x, y)) and taeda.allclose(made(x, y), h(x, y))
    os._exit(0 if fine else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
print("right")
"""


def test_fork_after_compiling(tmp_path):
    done = _run(FORK, TAEDA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


def test_exit_does_not_wait_for_the_compiler(tmp_path):
    slow = _script(tmp_path, "sleep 60")
    program = PROGRAM.replace("blocking=True", "blocking=False")
    begun = time.monotonic()
    done = _run(program, TAEDA_CXX=slow, TAEDA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("right\n", "")
    assert time.monotonic() - begun < 30


def test_calls_run_until_the_code_is_there():
    def f(x, y):
        return taeda.exp(-taeda.abs(x * y)) - x

    x, y = taeda.randn(40, 41), taeda.randn(40, 41)
    function = _compiler.compile(f, _fail)
    for _ in range(3):
        assert_close((function(x, y),), (f(x, y),), "f")
    assert regions(function) == 1


# Elements -----------------------------------------------------------------------


def test_huge_arguments_of_sines():
    def f(x, y):
        return taeda.sin(x * y) + taeda.cos(x)

    x = taeda.tensor([1e30, 3e12, 1.0, -2.5e20] * 8)
    y = taeda.ones(32)
    assert_close((compiled(f)(x, y),), (f(x, y),), "sin")


def test_nan_and_infinities():
    inf, nan = float("inf"), float("nan")
    x = taeda.tensor([[inf, 1.0, nan, -inf], [0.0, -0.0, 2.0, 3.0]])

    def f(x):
        y = taeda.maximum(x * 2, -x)
        return y.amax(-1), taeda.relu(x) + 1, (x > 0) & (x * 2 < 3)

    assert_close(compiled(f)(x), f(x), "special values")


def test_long_sums_keep_their_accuracy():
    x = taeda.rand(1 << 20) + 1

    def f(x):
        return (x * 1.5).sum()

    exact = (x.double() * 1.5).sum().item()
    assert abs(compiled(f)(x).item() - exact) <= 1e-6 * exact


def test_training_of_norms_equals_eager():
    weight, bias = taeda.randn(48), taeda.randn(48)

    def f(x, w, b):
        y = taeda.nn.functional.layer_norm(x * 2 + 1, (48,), w, b)
        return taeda.nn.functional.gelu(taeda.softmax(y, -1) * x)

    grads = []
    for function in (f, compiled(f)):
        taeda.manual_seed(3)
        given = [
            t.clone().requires_grad_() for t in (taeda.randn(20, 48), weight, bias)
        ]
        out = function(*given)
        out.backward(taeda.ones_like(out))
        grads.append([out.detach(), *(t.grad for t in given)])
    assert_close(grads[1], grads[0], "gradients")


def test_option_blocking():
    def f(x, y):
        return taeda.tanh(x * y) + x

    x, y = taeda.randn(30, 31), taeda.randn(30, 31)
    function = taeda.compile(f, options={"blocking": True})
    assert_close((function(x, y),), (f(x, y),), "f")
    with pytest.raises(RuntimeError, match="Unexpected type of attr blocking"):
        taeda.compile(f, options={"blocking": 1})(x, y)


def test_a_view_of_what_changes_nothing_shows_no_input():
    def f(x):
        y = (x[0] + 0)[:, None]
        x[0] = 2
        return y

    x = taeda.arange(6.0).view(2, 3)
    want = f(x.clone())
    assert taeda.equal(taeda.compile(f, options={"blocking": True})(x), want)


def test_a_float_among_integers_is_left_to_the_kernel():
    def program(x):
        return (taeda.addcmul(x, x + 1, x, value=1.75) - 1) * 2

    x = taeda.arange(7)
    assert taeda.equal(compiled(program)(x), program(x))


def test_equal_blocks_share_their_kernels() -> None:
    weights = [taeda.randn(24, 24) for _ in range(5)]

    def f(x):
        for w in weights:
            x = (x @ w).sigmoid() * 2 + 1
        return x

    made = compiled(f)
    x = taeda.randn(6, 24)
    assert_close([made(x)], [f(x)], "five blocks")
    (kernels,) = made.regions()
    assert len(kernels) == 5
    (text,) = {kernel.code for kernel in kernels}
    assert text.count('extern "C" void') == 1


def test_kernels_do_not_wait_for_each_other() -> None:
    """A kernel that reads what another one makes, which reads what it makes itself."""

    def program(a0, n):
        a0[0] = 2
        v0 = a0 + 1
        v0.masked_fill_(v0 < n, 0)
        v1 = a0 + 1
        v2 = taeda.nn.functional.normalize(v1, dim=0)
        v3 = v1.reshape(v1.shape[0], -1)
        return [v1, v2, v3, v0 @ v3]

    compiled = taeda.compile(program, fullgraph=True, options={"blocking": True})
    x = taeda.randn(7, requires_grad=True)
    for ours, eager in zip(compiled(x * 1, 3), program(x * 1, 3), strict=True):
        assert taeda.allclose(ours, eager)


def test_what_is_computed_of_an_expanded_value_is_written_whole() -> None:
    def program(x):
        y = (x + 1).expand(3, *x.shape)
        return y, y.mean(-1), y.amax(-1)

    x = taeda.randn(3, 7)
    compiled = taeda.compile(program, fullgraph=True, options={"blocking": True})
    for ours, eager in zip(compiled(x), program(x), strict=True):
        assert taeda.allclose(ours, eager)
