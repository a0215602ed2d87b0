"""Every generated device source compiles with NVRTC for sm_90."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvrtc import ROOT, compile_source


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


def test_a_mistake_is_reported() -> None:
    prelude = "#include <taeda/aten/native/cuda/prelude.cuh>\n"
    log = compile_source("wrong.cu", prelude + "int f() { return x; }")
    assert "wrong.cu" in log and '"x" is undefined' in log
