"""Two ulp, and no worse than PyTorch, against mpmath: aten/math/tools/accuracy.py."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import taeda
import torch
from math_build import ROOT

sys.path.insert(0, str(ROOT / "aten/math/tools"))

import accuracy


@pytest.mark.parametrize("name", accuracy.CASES)
def test_errors_of_two_ulp(name: str) -> None:
    case = accuracy.CASES[name]
    for dtype in (np.float32, np.float64):
        given = list(accuracy.arguments(case, 40, dtype))
        assert len(given) > 30
        found = accuracy.called(taeda, name, given, dtype)
        error, where = accuracy.ulps(case, given, found)
        assert error <= (0.51 if dtype is np.float32 else 2), (dtype, where)
        torchs = accuracy.called(torch, name, given, dtype)
        assert error <= max(0.51, accuracy.ulps(case, given, torchs)[0]) or error < 1.5


def test_every_shared_function_of_torch_special_is_compared() -> None:
    declared = (ROOT / "aten/math/shared.h").read_text()
    compared = {n for n in accuracy.CASES if f"({n})" in declared}
    assert compared == set(accuracy.CASES)


@pytest.mark.parametrize(("group", "header"), [("jy", "cells_jy"), ("rest", "cells")])
def test_cells_are_what_the_tool_prints(group: str, header: str) -> None:
    done = subprocess.run(
        [sys.executable, "cells.py", group],
        cwd=ROOT / "aten/math/tools",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / f"aten/math/{header}.h").read_text()
