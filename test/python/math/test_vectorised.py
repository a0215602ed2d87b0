"""g++ turns a loop over each function into vector code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from math_build import LEVELS, compile_cpp, include_folder
from math_functions import BINARY, NOT_VECTORISED_DOUBLE, TERNARY, UNARY


def loop(name: str, arity: int, dtype: str) -> str:
    arguments = ", ".join(f"{x}[i]" for x in "abc"[:arity])
    return (
        f"void {name}_loop({dtype}* __restrict out, const {dtype}* __restrict a, "
        f"const {dtype}* __restrict b, const {dtype}* __restrict c, long n) {{ "
        f"(void)b; (void)c; for (long i = 0; i < n; ++i) "
        f"out[i] = taeda::math::{name}({arguments}); }}"
    )


def vectorised(dtype: str, level: str, folder: Path) -> set[str]:
    arities = [(name, 1) for name in UNARY] + [(name, 2) for name in BINARY]
    arities += [(name, 3) for name in TERNARY]
    lines = ["#include <taeda/aten/math/math.h>"]
    lines += [loop(name, arity, dtype) for name, arity in arities]
    source = folder / "loops.cpp"
    source.write_text("\n".join(lines) + "\n")
    # Without inline notes, the report names the line of the loop's own function.
    messages = compile_cpp(
        source,
        folder / "loops.s",
        level,
        include_folder(folder),
        "-S",
        "-fno-ipa-icf",  # sgn of a real number is sign: keep both loops
        "-fopt-info-vec-optimized",
    )
    names = [name for name, _ in arities]
    found = re.findall(r"loops\.cpp:(\d+):\d+: optimized: loop vect", messages)
    return {names[int(line) - 2] for line in found}


@pytest.mark.parametrize("level", LEVELS)
def test_every_float_loop_is_vector_code(level: str, tmp_path: Path) -> None:
    assert vectorised("float", level, tmp_path) == {*UNARY, *BINARY, *TERNARY}


@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_double_loops_are_vector_code(level: str, tmp_path: Path) -> None:
    missing = {*UNARY, *BINARY, *TERNARY} - vectorised("double", level, tmp_path)
    assert missing == NOT_VECTORISED_DOUBLE


def test_the_ends_of_exp_cost_two_comparisons(tmp_path: Path) -> None:
    """What follows an exp is formed once, and not anew for each end of its range."""
    source = tmp_path / "loops.cpp"
    source.write_text(
        "#include <taeda/aten/math/math.h>\n"
        "void f(float* __restrict out, const float* __restrict a,\n"
        "       const float* __restrict b, long n) {\n"
        "  for (long i = 0; i < n; ++i) out[i] = b[i] * taeda::math::exp(a[i]);\n"
        "}\n"
    )
    assembly = tmp_path / "loops.s"
    compile_cpp(source, assembly, "avx512", include_folder(tmp_path), "-S")
    wide = [line for line in assembly.read_text().splitlines() if "%zmm" in line]
    assert sum("vfmadd" in line for line in wide) >= 5
    assert sum("vcmp" in line for line in wide) <= 2
