"""Device kernels, compiled as host C++, compute what the CPU kernels compute."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tools.codegen.emit_kernels import COMPUTE_ORDER

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build"
# The baseline's kernels: neither side contracts a * b + c, so bits must agree.
OBJECTS = BUILD / "CMakeFiles/kernels_default.dir/gen/kernels"
# Functions that all levels share.
SHARED = BUILD / "CMakeFiles/taeda_objects.dir/aten/math/shared.cpp.o"
ENTRY = re.compile(r'extern "C" __global__ void ((\w+)_([a-z]+\d*))\(')
FLAGS = ["-std=c++20", "-O0", "-fno-math-errno", "-fno-trapping-math", "-w"]


def driver(sources: list[Path], compares: bool = True) -> tuple[str, int]:
    """A program that calls every kernel of the sources, and how many there are."""
    lines = ['#include "host_run.h"']
    lines += [f'#include "{path}"' for path in sources]
    entries = [m.groups() for p in sources for m in ENTRY.finditer(p.read_text())]
    lines.append("namespace taeda::isa_default {")
    for table in sorted({table for _, table, _ in entries if compares}):
        kind = "ReduceTable" if table.startswith("r_") else "ChunkTable"
        lines.append(f"extern const {kind} {table};")
    lines += ["}", "int main() {"]
    for name, table, compute in entries:
        call = "reduction" if table.startswith("r_") else "pointwise"
        cpu = f"taeda::isa_default::{table}[{COMPUTE_ORDER.index(compute)}]"
        if not compares:
            cpu = "taeda::ReduceKernel{}" if call == "reduction" else "nullptr"
        lines.append(f'  host_run::{call}("{name}", taeda::{name}, {cpu});')
    lines += ["  return host_run::failures != 0;", "}"]
    return "\n".join(lines), len(entries)


def build(text: str, folder: Path, *more: str | Path) -> None:
    """The program `host_run` of a folder, of a text and other files."""
    program = folder / "host_run.cpp"
    program.write_text(text)
    command = [os.environ.get("CXX", "g++"), *FLAGS, f"-I{HERE}", *more, program]
    built = subprocess.run(
        [*command, "-o", folder / "host_run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-4000:]


def run(sources: list[Path], folder: Path) -> tuple[int, str]:
    """How many kernels were compared, and what was different."""
    text, count = driver(sources)
    objects = [*sorted(OBJECTS.glob("*.o")), SHARED]
    build(text, folder, f"-I{BUILD}/include", *objects)
    done = subprocess.run(
        [folder / "host_run"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.returncode
    assert (done.returncode == 0) == (done.stdout == "")
    return count, done.stdout


def test_device_kernels_agree_with_the_cpu(tmp_path: Path) -> None:
    count, different = run(sorted((BUILD / "gen/cuda").glob("*.cu")), tmp_path)
    assert count > 300
    assert not different, different[-6000:]


@pytest.mark.parametrize("name", ["mul", "sum"])
def test_a_wrong_kernel_is_noticed(name: str, tmp_path: Path) -> None:
    right = (BUILD / f"gen/cuda/{name}.cu").read_text()
    wrong = tmp_path / f"{name}.cu"
    text = right.replace("self * other", "self / other").replace("a + b", "a")
    wrong.write_text(text)
    assert text != right
    assert f"_{name}_" in run([wrong], tmp_path)[1]
