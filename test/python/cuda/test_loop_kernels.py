"""CUDA text of loop programs: NVRTC compiles it, and on the host, and on a GPU where
there is one, it computes what the calls that it stands for compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import loop_functions as functions
import loops_programs as programs
import pytest
import taeda
from gpu import missing
from loop_kernels import (
    Case,
    GpuLibrary,
    HostLibrary,
    cases_of,
    regions_of,
    run,
    text_of,
)
from nvrtc import ROOT, compile_source

BOTH = (1, 132)  # processors
LIBRARIES = (HostLibrary,) if missing() else (HostLibrary, GpuLibrary)


def differences(cases: list[Case], text: str, folder: Path, kind=HostLibrary) -> str:
    """Of each kernel from its calls, with all orders of the threads of a block."""
    library = kind(text, cases, folder)
    return "".join(run(library, c, order) for c in cases for order in library.orders)


def check(cases: list[Case], folder: Path) -> None:
    """Holds each text to its calls, and shows it to NVRTC."""
    text = text_of(cases)
    for kind in LIBRARIES:
        assert differences(cases, text, folder, kind) == ""
    for architecture in ("sm_80", "sm_90a"):
        log = compile_source("loops.cu", text, architecture)
        assert not log, log[:2000]


def cases(what: str, function, inputs: list, processors=BOTH) -> list[Case]:
    """The texts of a function's kernels for some devices, with names of their own."""
    regions = regions_of(function, inputs)
    name = "".join(c if c.isalnum() else "_" for c in what)
    return [c for n in processors for c in cases_of(what, regions, n, name)]


FLOAT_CASES = [
    (shape, dtype)
    for shape in functions.SHAPES
    for dtype in functions.FLOATS
    if shape not in functions.LARGE or dtype in (taeda.float32, taeda.bfloat16)
]


@pytest.mark.parametrize(("shape", "dtype"), FLOAT_CASES, ids=str)
def test_functions_of_floats(shape, dtype, tmp_path):
    found = []
    for name, (function, backward) in functions.FLOAT_FUNCTIONS.items():
        taeda.manual_seed(1)
        inputs = functions.inputs(shape, dtype)
        if backward:
            inputs = [t.requires_grad_() for t in inputs]
        found += cases(f"{name} {dtype}", function, inputs, functions.SHAPES[shape])
    assert len(found) >= 20
    check(found, tmp_path)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.bfloat16], ids=str)
def test_index_maps_and_windows(dtype, tmp_path):
    functional = taeda.nn.functional
    image = taeda.randn(2, 3, 9, 40).to(dtype)
    maps = {
        "pad": lambda x: functional.pad(x, (1, 2, 3, -1), value=1.5) * 2,
        "tril": lambda x: x.tril() * 2,
        "unfold": lambda x: functional.unfold(x, 3, padding=1) * 2,
        "max pool": lambda x: functional.max_pool2d(x, 3, 2, 1),
        "avg pool": lambda x: functional.avg_pool2d(x, 3, 1, 1) + 1,
        "sums": lambda x: (functional.pad(x, (1, 2)) * 2).sum(-1),
    }
    found = []
    for name, function in maps.items():
        found += cases(f"{name} {dtype}", function, [image])
    assert len(found) >= 2 * len(maps)
    check(found, tmp_path)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
def test_huge_arguments_of_sines(dtype, tmp_path):
    inputs = functions.inputs((33, 37), dtype)
    check(cases("sines", functions.far_sines, inputs), tmp_path)


@pytest.mark.parametrize("function", [functions.integers, functions.bits])
def test_functions_of_integers(function, tmp_path):
    found = []
    for shape, processors in functions.SHAPES.items():
        dtypes = (taeda.int64, taeda.int32, taeda.int8, taeda.uint8)
        if shape in functions.LARGE:
            dtypes = (taeda.int64,)
        for dtype in (taeda.bool,) if function is functions.bits else dtypes:
            inputs = functions.inputs(shape, dtype)
            found += cases(f"{dtype} {shape}", function, inputs, processors)
    assert len(found) >= 10
    check(found, tmp_path)


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.int64], ids=str)
def test_random_programs(dtype, tmp_path):
    floating = dtype.is_floating_point
    make = programs.float_program if floating else programs.int_program
    found = []
    for seed in range(12):
        inputs = programs.inputs(seed, dtype)
        found += cases(f"{dtype} program {seed}", make(seed), inputs)
    assert len(found) >= 30
    check(found, tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(a + b)", "(a - b)"),
        ("static_cast<Index>(gridDim.x)", "2 * static_cast<Index>(gridDim.x)"),
        ("r < 72", "r < 68"),
        ("o < 200", "o < 199"),
        (".at[e]", ".at[0]"),
    ],
)
def test_a_wrong_kernel_is_noticed(right, wrong, tmp_path):
    taeda.manual_seed(1)
    inputs = functions.inputs((200, 72), taeda.float32)
    found = cases("rows", functions.rows, inputs, processors=(1,))
    text = text_of(found)
    assert differences(found, text, tmp_path) == ""
    assert right in text
    changed = tmp_path / "changed"
    changed.mkdir()
    assert "differs" in differences(found, text.replace(right, wrong), changed)


def test_a_missing_barrier_is_noticed(tmp_path):
    taeda.manual_seed(1)
    inputs = functions.inputs((5, 3000), taeda.float32)
    found = cases("rows", functions.rows, inputs, processors=(1,))
    text = text_of(found)
    assert differences(found, text, tmp_path) == ""
    without = tmp_path / "without"
    without.mkdir()
    include = "#include <taeda/aten/native/cuda/loops.cuh>"
    header = (ROOT / "aten/native/cuda/loops.cuh").read_text()
    none = header.replace("__syncthreads();", "") + text.replace(include, "")
    assert "differs" in differences(found, none, without)


def texts_of(compiled: str, folder: Path) -> list[str]:
    """What is kept of a model of two blocks and a sum of its rows."""
    program = (
        "import taeda; from taeda import _compiler\n"
        "a, b = taeda.ones(32, 32), taeda.ones(32, 32)\n"
        "def f(x):\n"
        "    for w in (a, b):\n"
        "        x = taeda.softmax(x * 2, -1) @ w\n"
        "    return (x + 1).sum(0)\n"
        "x = taeda.ones(64, 32)\n" + compiled
    )
    environment = os.environ | {"TAEDA_KERNEL_TEXTS": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list(folder.glob("*.cpp"))
    return [kept.read_text() for kept in folder.glob("*.cu")]


def test_texts_are_kept_where_asked(tmp_path):
    program = "assert _compiler.compile(f, print, blocking=True).prepare(x)"
    (kept,) = texts_of(program, tmp_path)
    assert kept.count("// region0: grid 16 x 1, block 128, shared 0\n") == 1
    assert "// region1" in kept and "// region2" not in kept  # equal ones stand once
    assert compile_source("kept.cu", kept) == ""


def test_texts_over_symbols_are_not_there(tmp_path):
    wait = '{"blocking": True}'
    program = f"taeda.compile(f, dynamic=True, options={wait})(x)"
    assert texts_of(program, tmp_path) == []
