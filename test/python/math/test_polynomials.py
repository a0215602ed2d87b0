"""The committed coefficients are those that the tool finds."""

from __future__ import annotations

import subprocess
import sys

from math_build import ROOT


def test_polynomials_are_what_the_tool_prints() -> None:
    done = subprocess.run(
        [sys.executable, "minimax.py"],
        cwd=ROOT / "aten/math/tools",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / "aten/math/polynomials.h").read_text()
