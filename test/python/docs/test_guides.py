"""The guides are true: their programs run, and what they show in C++ compiles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ROOT / "docs" / "guides"
# test/python/opinfo/test_guide.py adds its operators to a copy of the tree.
OTHERWISE = {"adding_an_operator.md"}
PAGES = sorted(
    path.name
    for path in GUIDES.glob("*.md")
    if "```python\n" in path.read_text() and path.name not in OTHERWISE
)
PROGRAM = """
import pathlib, sys
from docsite.examples import run_guide
assert run_guide(pathlib.Path(sys.argv[1])) > 0
"""


def run(*words: str | Path, folder: Path, **env: str) -> str:
    path = f"{ROOT / 'python'}:{ROOT / 'tools'}"
    done = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": path, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_the_guides_are_found() -> None:
    assert len(PAGES) >= 5, PAGES


@pytest.mark.parametrize("page", PAGES)
def test_its_programs_run(page: str, tmp_path: Path) -> None:
    extensions = {"TAEDA_EXTENSIONS_DIR": str(tmp_path)}
    run(sys.executable, "-c", PROGRAM, GUIDES / page, folder=tmp_path, **extensions)


def test_the_embedded_program_learns(tmp_path: Path) -> None:
    from taeda.utils import cpp_extension

    text = (GUIDES / "embedding_in_cpp.md").read_text()
    (source,) = re.findall(r"```cpp\n(.*?)```", text, re.S)
    (tmp_path / "fit.cpp").write_text(source)
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, "-std=c++20", "-O0", "fit.cpp", "-o", "fit"]
    command += [f"-I{path}" for path in cpp_extension.include_paths()]
    for path in cpp_extension.library_paths():
        command += [f"-L{path}", f"-Wl,-rpath,{path}"]
    run(*command, "-ltaeda", folder=tmp_path)
    printed = run(tmp_path / "fit", folder=tmp_path)
    (promised,) = re.findall(r"It prints `(.*?)`", text)
    assert printed.strip() == promised
