"""The stated errors hold at every ISA level that the machine has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from math_build import LEVELS, ROOT, compile_cpp, include_folder, runs_here

# Lines that each program must print: what did not run cannot have passed.
CASES = {"accuracy_unary": 70, "accuracy_binary": 12, "accuracy_complex": 38}
EXPECTATIONS = 220
HERE = [level for level in LEVELS if runs_here(level)]


def run(program: str, level: str, folder: Path, *arguments: str) -> str:
    binary = folder / program
    source = ROOT / "test/cpp/math" / f"{program}.cpp"
    compile_cpp(source, binary, level, include_folder(folder))
    done = subprocess.run(
        [str(binary), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize("program", CASES)
def test_errors_stay_within_their_bounds(
    program: str, level: str, tmp_path: Path
) -> None:
    output = run(program, level, tmp_path, "50000")
    assert len(re.findall(r"^ok ", output, re.MULTILINE)) == CASES[program]


@pytest.mark.parametrize("level", HERE)
def test_special_values(level: str, tmp_path: Path) -> None:
    output = run("special_values", level, tmp_path)
    assert output == f"ran {EXPECTATIONS}, failed 0\n"
