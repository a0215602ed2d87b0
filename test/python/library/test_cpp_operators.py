"""A user's C++ project builds against the installed package and runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROJECT = Path(__file__).parent / "cpp_operators"

USE = """
import sys
import taeda
from taeda.autograd import gradcheck, gradgradcheck
taeda.ops.load_library(sys.argv[1])
ops = taeda.ops.cpp_operators
x = taeda.tensor([1.0, 2.0], requires_grad=True)
y = ops.scaled_cube(x, 2.0)
assert y.tolist() == [2.0, 16.0]
y.sum().backward()
assert x.grad.tolist() == [6.0, 24.0]
d = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
assert gradcheck(lambda t: ops.scaled_cube(t, 0.5), (d,))
assert gradgradcheck(lambda t: ops.scaled_cube(t, 0.5), (d,))
assert ops.twice(taeda.ones(2, 3).t()).tolist() == [[2.0, 2.0]] * 3
assert ops.twice(taeda.ones(4, device="meta")).shape == (4,)
assert [t.tolist() for t in ops.parts(taeda.arange(3), 3)] == [[0], [1], [2]]
assert len(ops.parts.default(taeda.arange(4))) == 2
try:
    ops.twice(taeda.ones(2, dtype=taeda.int32))
except RuntimeError as error:
    assert "expected float32, got Int" in str(error), error
else:
    raise AssertionError("no error")
print("used", taeda.__file__)
"""


def run(*words: str | Path, **env: str) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as a wheel would install it."""
    from devtool import package

    folder = tmp_path_factory.mktemp("site")
    package.install_into(folder)
    return folder


@pytest.fixture(scope="module")
def built(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build folder of the project."""
    folder = tmp_path_factory.mktemp("project")
    script = "import taeda.utils; print(taeda.utils.cmake_prefix_path)"
    prefix = run(sys.executable, "-c", script, PYTHONPATH=str(site)).strip()
    others = []
    torch = importlib.util.find_spec("torch")
    if torch is not None:
        include = Path(torch.origin).parent / "include"
        others = [str(include), str(include / "torch/csrc/api/include")]
    cmake = Path(sys.executable).with_name("cmake")
    run(
        *(cmake, "-S", PROJECT, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}"),
        *("-DCMAKE_BUILD_TYPE=Debug", f"-DOTHER_HEADERS={';'.join(others)}"),
    )
    run(cmake, "--build", folder)
    return folder


def test_operators_run_and_have_gradients(built: Path, site: Path) -> None:
    library = built / "libcpp_operators.so"
    printed = run(sys.executable, "-c", USE, library, PYTHONPATH=str(site))
    assert f"used {site}" in printed


def test_a_program_without_python_learns(built: Path) -> None:
    assert run(built / "embed").split() == ["2.000000", "1.000000"]


INLINE = """
import taeda
from taeda.utils import cpp_extension
made = cpp_extension.load_inline(
    "doubling",
    "torch::Tensor doubled(torch::Tensor x) { return x + x; }",
    functions="doubled",
)
print(made.doubled(taeda.ones(2)).tolist(), *cpp_extension.include_paths())
"""


def test_inline_sources_build_against_the_package(site: Path, tmp_path: Path) -> None:
    where = {"PYTHONPATH": str(site), "TAEDA_EXTENSIONS_DIR": str(tmp_path)}
    printed = run(sys.executable, "-c", INLINE, **where)
    assert printed.startswith(f"[2.0, 2.0] {site}")
