"""Records' kernels on a GPU give what the same text gives on the host, bit for bit.

Where there is no GPU, only what the host's calls file holds is looked at.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from gpu import UNCONTRACTED, gpu, missing
from host_calls import Call, difference, on_gpu, read_calls
from nvrtc import ROOT
from test_host_run import build, driver

NAMES = ["add", "sum", "sigmoid", "isnan"]
PARTS = 16  # that may run beside each other


def include_folder(folder: Path) -> Path:
    """A folder in which `taeda/` is the source tree: no build is needed."""
    made = folder / "include"
    made.mkdir()
    (made / "taeda").symlink_to(ROOT)
    return made


def host_calls(sources: list[Path], folder: Path) -> list[Call]:
    text, _ = driver(sources, compares=False)
    shared = ROOT / "aten/math/shared.cpp"
    build(text, folder, f"-I{include_folder(folder)}", shared)
    environment = os.environ | {"TAEDA_HOST_CALLS": str(folder / "calls")}
    subprocess.run([folder / "host_run"], env=environment, check=True)
    return list(read_calls(folder / "calls"))


def different_on_gpu(source: Path, folder: Path) -> list[str]:
    code = gpu().module(source.name, source.read_text(), UNCONTRACTED)
    found = []
    for call in host_calls([source], folder):
        if what := difference(on_gpu(gpu(), code, call), call.results):
            found.append(f"{call.kernel}: {what}")
    return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated afresh: the test needs no build."""
    from tools.codegen.main import generate

    folder = tmp_path_factory.mktemp("gen")
    generate(ROOT / "aten/ops", folder).flush()
    return folder / "cuda"


def test_calls_on_the_host_are_written(generated: Path, tmp_path: Path) -> None:
    calls = host_calls([generated / f"{name}.cu" for name in NAMES], tmp_path)
    kernels = {call.kernel for call in calls}
    assert {"k_add_f32", "k_sigmoid_f64", "k_isnan_f32", "k_add_bool"} <= kernels
    (first, *_) = [call for call in calls if call.kernel == "k_add_i64"]
    assert len(first.results) == len(first.places) == 600
    assert [memory for memory, _ in first.arguments] == [1, 0, 1, 0, 1, 0, 0, 0]
    left, right = (np.frombuffer(first.arguments[i][1], "i8")[:600] for i in (2, 4))
    alpha = np.frombuffer(first.arguments[6][1], "i8")
    assert (first.results == left + alpha * right).all()
    (total, *_) = [call for call in calls if call.kernel == "r_sum_i64"]
    rows = np.frombuffer(total.arguments[0][1], "i8").reshape(50, 6)
    assert (total.results == rows.sum(0)).all()


def test_differences_are_counted() -> None:
    nan, want = np.float32("nan"), np.array([1, 0, np.nan, 4], np.float32)
    assert difference(np.array([1, -0.0, nan, 4], np.float32), want) == ""
    assert difference(np.array([nan, 0, 3, 4], np.float32), want).startswith("2 of 4")
    pair = np.array([complex(1, np.nan)])
    assert difference(pair.copy(), pair) == ""
    assert difference(np.array([complex(2, np.nan)]), pair) != ""


if not missing():

    @pytest.mark.parametrize("part", range(PARTS))
    def test_kernels_on_the_gpu(part: int, generated: Path, tmp_path: Path) -> None:
        found = []
        for source in sorted(generated.glob("*.cu"))[part::PARTS]:
            folder = tmp_path / source.stem
            folder.mkdir()
            found += different_on_gpu(source, folder)
        assert not found, "\n".join(found)[-6000:]
