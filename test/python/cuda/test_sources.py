"""Every generated device source compiles with NVRTC for GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvrtc import ROOT, compile_source

from tools.codegen.formula_cuda import KINDS, has_formula, result_names, text_of
from tools.codegen.model import Operator, load_operators
from tools.codegen.schema import Argument


def sources(folder: Path) -> list[Path]:
    return sorted((folder / "cuda").glob("*.cu"))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated afresh: the test needs no build."""
    from tools.codegen.main import generate

    folder = tmp_path_factory.mktemp("gen")
    generate(ROOT / "aten/ops", folder).flush()
    return folder


def test_every_source_compiles_for_sm_90(generated: Path) -> None:
    paths = sources(generated)
    assert len(paths) > 100
    logs = {p.name: compile_source(p.name, p.read_text()) for p in paths}
    failed = {name: log.splitlines()[:3] for name, log in logs.items() if log}
    assert not failed


READ_AS = {"int": "Long", "float": "double", "complex": "complex<double>"}
STORED = {"int": "int", "float": "Half", "complex": "complex<float>"}


def member(argument: Argument, kind: str) -> str:
    """The argument as given.cpp declares it."""
    if argument.type.is_list:
        return f"const Numbers {argument.name};"
    if argument.type.base != "Tensor":
        return f"const Number {argument.name};"
    kind = "int" if argument.name in ("index", "indices") else kind
    return f"const Elements<{STORED[kind]}, {READ_AS[kind]}> {argument.name};"


def formula_program(number: int, op: Operator, kind: str, text: str) -> str:
    """A kernel over the formula's text, in a namespace of its own."""
    taken = [a for a in op.schema.arguments if a not in op.schema.out_args]
    members = [member(a, kind) for a in taken]
    result = f"const Elements<{STORED[kind]}, {READ_AS[kind]}>"
    members += [f"{result} {name};" for name in result_names(op)]
    call = "g.result.write(0, value_of(g, Place(g.result.slot, 0)));"
    if "struct Fold" in text:
        call = "fold_row<Fold<Given>>(g, 0, 9); scan_row<Fold<Given>, 1>(g, 0, 9);"
    return f"""namespace n{number} {{
{text}
struct Given {{ {" ".join(members)} }};
__global__ void kernel(const Given g) {{ {call} }}
}}
"""


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_formulas_compile(architecture: str) -> None:
    operators = [op for op in load_operators(ROOT / "aten/ops") if has_formula(op)]
    parts = [
        (op, kind, text)
        for op in operators
        for kind in KINDS
        if (text := text_of(op, kind)) is not None
    ]
    assert len(parts) > 150
    program = "#include <taeda/aten/native/cuda/formula.cuh>\nnamespace taeda {\n"
    program += "".join(formula_program(i, *part) for i, part in enumerate(parts))
    assert compile_source("formulas.cu", program + "}\n", architecture) == ""


def test_a_mistake_is_reported() -> None:
    prelude = "#include <taeda/aten/native/cuda/prelude.cuh>\n"
    log = compile_source("wrong.cu", prelude + "int f() { return x; }")
    assert "wrong.cu" in log and '"x" is undefined' in log
