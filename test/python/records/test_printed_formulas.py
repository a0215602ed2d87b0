"""Formulas of maps, reductions and scans as C++: compiled, they are the kernels."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import taeda
from fold_law import agree, holds
from map_calls import calls
from test_folds import FOLDS, Expected, drawn, run, scale_of
from test_maps import MAPS, variants

from tools.codegen.fold_formula import formulas_of, step_of
from tools.codegen.formula_cpp import HEADER, fold_function, map_function
from tools.codegen.map_formula import formula_of
from tools.codegen.records import Overload

ROOT = Path(__file__).resolve().parents[3]
KINDS = {"f": "float", "i": "int", "b": "bool"}
CALLS = 8


class Argument(ctypes.Structure):
    """`formula::Argument` of aten/expr/formula.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("size", ctypes.c_int64),
        ("number", ctypes.c_double),
        ("integer", ctypes.c_int64),
        ("missing", ctypes.c_bool),
    )


class Arguments:
    """Values as a printed function takes them, kept alive."""

    def __init__(self, values: list) -> None:
        self.kept: list = []
        self.array = (Argument * max(len(values), 1))(*map(self._one, values))

    def _one(self, value: object) -> Argument:
        if value is None:
            return Argument(missing=True)
        if isinstance(value, np.ndarray):
            sizes = (ctypes.c_int64 * max(value.ndim, 1))(*value.shape)
            value = np.asarray(value, order="C")
            self.kept += [value, sizes]
            return Argument(data=value.ctypes.data, sizes=sizes, size=value.ndim)
        if isinstance(value, list):
            whole = all(isinstance(v, int) for v in value)
            entries = np.array(value, dtype=np.int64 if whole else np.float64)
            self.kept.append(entries)
            return Argument(data=entries.ctypes.data, size=len(value))
        if isinstance(value, (bool, int)):
            return Argument(number=value, integer=value)
        if isinstance(value, float):
            return Argument(number=value)
        return Argument()  # a dtype, a device: no formula looks at it


def kinds_of(values: dict) -> dict[str, str]:
    return {
        name: KINDS[value.dtype.kind]
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }


def map_calls(name: str) -> Iterator[tuple[dict, np.ndarray]]:
    """Calls with float64 data, and what the kernel makes of them."""
    for call in calls(name, CALLS):
        for dtype, layout, values in variants(MAPS[name], call):
            if (dtype, layout) == ("float64", "dense"):
                yield values, run(MAPS[name], values, layout)[0]


def fold_calls(name: str) -> Iterator[tuple[dict, Expected, list[np.ndarray]]]:
    r = np.random.default_rng([ord(c) for c in name])
    for _ in range(CALLS):
        values = drawn(name, r)
        if values.get("dtype") is not None:
            values["dtype"] = taeda.float64
        for argument in FOLDS[name].schema.out_args:
            values[argument.name] = taeda.empty(0, dtype=taeda.float64)
        expected = Expected(FOLDS[name], values)
        if not expected.refuses:
            yield values, expected, run(FOLDS[name], values, "dense")


def symbol(name: str, choice: int = 0) -> str:
    return f"f_{name.replace('.', '__')}_{choice}"


def printed_map(name: str) -> str:
    values, result = next(map_calls(name))
    kind = KINDS[result.dtype.kind]
    overload = MAPS[name]
    tree = formula_of(overload)
    arguments = overload.schema.arguments
    return map_function(symbol(name), tree, arguments, kinds_of(values), kind)


def printed_fold(name: str) -> str:
    overload = FOLDS[name]
    values, _, results = next(fold_calls(name))
    step = step_of(overload)
    return "".join(
        fold_function(
            symbol(name, i),
            formula,
            overload.schema.arguments,
            kinds_of(values),
            [KINDS[result.dtype.kind] for result in results],
            0 if step is None else step.value,
        )
        for i, formula in enumerate(formulas_of(overload))
    )


def compiled(texts: list[str], folder: Path) -> ctypes.CDLL:
    include = folder / "include" / "taeda"
    include.mkdir(parents=True)
    for part in ("aten", "c10"):
        (include / part).symlink_to(ROOT / part)
    source, library = folder / "formulas.cpp", folder / "formulas.so"
    source.write_text(HEADER + "".join(texts))
    command = ["g++", "-std=c++20", "-O0", "-Wall", "-shared", "-fPIC"]
    command += ["-I", str(include.parent), str(source), "-o", str(library)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled([printed_map(n) for n in MAPS], tmp_path_factory.mktemp("maps"))


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled([printed_fold(n) for n in FOLDS], tmp_path_factory.mktemp("folds"))


def in_order(overload: Overload, values: dict) -> list:
    return [values.get(a.name) for a in overload.schema.arguments]


def assert_agree(found: np.ndarray, result: np.ndarray) -> None:
    scale = scale_of(result)
    for value, have in zip(found.reshape(-1), result.reshape(-1), strict=True):
        assert agree(value.item(), have.item(), result.dtype, scale), (found, result)


@pytest.mark.parametrize("name", MAPS)
def test_compiled_map_is_the_kernel(maps: ctypes.CDLL, name: str) -> None:
    made = 0
    for values, result in map_calls(name):
        found = np.full_like(result, 7, order="C")
        given = Arguments(in_order(MAPS[name], values))
        getattr(maps, symbol(name))(given.array, Arguments([found]).array)
        assert_agree(found, result)
        made += result.size
    assert made > 0


@pytest.mark.parametrize("name", FOLDS)
def test_compiled_fold_is_the_kernel(folds: ctypes.CDLL, name: str) -> None:
    overload, made = FOLDS[name], 0
    for values, expected, results in fold_calls(name):
        choice = [holds(f.when, values) for f in formulas_of(overload)].index(True)
        rows = [row for row, _ in expected.rows()]
        size = max((size for _, size in expected.rows()), default=0)
        tensors = {
            n: np.array([row[n] for row in rows]).reshape(len(rows), size)
            for n in expected.operands
        }
        shape = (len(rows), size) if overload.family == "scan" else (len(rows),)
        found = [np.full(shape, 7, dtype=result.dtype) for result in results]
        given = Arguments(in_order(overload, {**values, **tensors}))
        getattr(folds, symbol(name, choice))(given.array, Arguments(found).array)
        for value, result in zip(found, results, strict=True):
            if overload.family == "scan":
                result = np.moveaxis(np.atleast_1d(result), expected.axes[0], -1)
            assert_agree(value, result)
            made += result.size
    assert made > 0
