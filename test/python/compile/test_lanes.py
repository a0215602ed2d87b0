"""Reductions along rows: every fold, element type and length, and their code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda import _compiler
from test_loops import assert_close

LENGTHS = (2, 3, 15, 16, 17, 33, 64, 65, 130, 512, 700)
FOLDS = {
    "sum": lambda x: x.sum(-1, keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "prod": lambda x: x.prod(-1, keepdim=True),
    "amax": lambda x: x.amax(-1, keepdim=True),
    "amin": lambda x: x.amin(-1, keepdim=True),
    "any": lambda x: (x > 1).any(-1, keepdim=True),
    "all": lambda x: (x < 2).all(-1, keepdim=True),
    "count": lambda x: taeda.count_nonzero(x, -1)[..., None],
    "norm": lambda x: taeda.linalg.vector_norm(x, 2, -1, keepdim=True),
}
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8")
OF_FLOATS = ("mean", "norm")
PAIRS = [
    (fold, dtype)
    for fold in FOLDS
    for dtype in DTYPES
    if fold not in OF_FLOATS or "float" in dtype
]


def _fail(error: BaseException) -> None:
    raise error


def _rows(length: int, dtype: taeda.dtype) -> taeda.Tensor:
    """Rows that lie apart, near one in size so that products stay finite."""
    taeda.manual_seed(length)
    x = taeda.rand(9, length + 3) * 0.2 + 0.9
    if dtype.is_floating_point:
        x[2, length // 2] = float("nan")
        x[3, 0] = float("inf")
        x[4] = -x[4]
    else:
        x = x * 2.5
    return x.to(dtype)[:, :length]


@pytest.mark.parametrize(("fold", "dtype"), PAIRS)
def test_folds_equal_eager(fold: str, dtype: str) -> None:
    kind = getattr(taeda, dtype)

    def program(x):
        return FOLDS[fold](x + 1 - 1), x + 1

    function = _compiler.compile(program, _fail, blocking=True)
    threads = taeda.get_num_threads()
    for count in (1, 2):
        taeda.set_num_threads(count)
        try:
            for length in LENGTHS:
                x = _rows(length, kind)
                what = f"{fold} of {length} {dtype}, {count} threads"
                assert_close(function(x), program(x), what)
        finally:
            taeda.set_num_threads(threads)


PROGRAM = """
import taeda
from taeda import _compiler
def fail(error):
    raise error
f = _compiler.compile(lambda x: taeda.softmax(x * 0.5, -1) + 1, fail, blocking=True)
f(taeda.randn(8, 64))
"""


def test_short_rows_meet_as_vectors(tmp_path: Path) -> None:
    """No lane is taken out of its register by itself, as g++ does it unasked."""
    environment = {
        **os.environ,
        "TAEDA_KERNEL_TEXTS": str(tmp_path),
        "TAEDA_CACHE_DIR": str(tmp_path / "cache"),
    }
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
    (source,) = tmp_path.glob("*.cpp")
    headers = Path(taeda.__file__).parent / "include"
    flags = "-std=c++20 -O3 -fno-math-errno -fno-trapping-math -fwrapv -mfma"
    flags += " -mavx512f -mavx512vl -mavx512bw -mavx512dq -mprefer-vector-width=512"
    command = ["g++", *flags.split(), f"-I{headers}", "-S", "-o", "-", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    folds = re.findall(r"\bv(?:max|add)ss\b", done.stdout)
    taken = re.findall(r"\bvaligndt?\b", done.stdout)
    # Two folds of 16 lanes: 8 and 4 as vectors, the rest by themselves.
    assert len(folds) <= 24
    assert len(taken) <= 4
