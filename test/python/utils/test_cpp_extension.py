"""C++ in PyTorch's notation builds against this package and runs in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda.utils import cpp_extension

SOURCES = Path(__file__).parent / "cpp_extension"


@pytest.fixture(scope="module", autouse=True)
def builds(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("extensions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAEDA_EXTENSIONS_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def values():
    return cpp_extension.load("values", str(SOURCES / "values.cpp"))


def test_a_layer_with_gradients_of_its_own() -> None:
    gate = cpp_extension.load("gate", [SOURCES / "gate.cpp"], extra_cflags=["-O1"])

    class Gate(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, bias):
            result, value, slope = gate.forward(x, w, bias)
            ctx.save_for_backward(value, slope, x, w)
            return result

        @staticmethod
        def backward(ctx, grad):
            return tuple(gate.backward(grad, *ctx.saved_tensors))

    shapes = ((3, 4), (10, 4), (10,))
    inputs = [taeda.randn(s, dtype=taeda.float64, requires_grad=True) for s in shapes]
    assert taeda.autograd.gradcheck(Gate.apply, inputs)
    x, w, bias = inputs
    value, slope = taeda.nn.functional.linear(x, w, bias).chunk(2, 1)
    expected = value.tanh() * slope.sigmoid()
    assert taeda.allclose(Gate.apply(*inputs), expected)
    z = taeda.tensor([-1.0, 0.5], requires_grad=True)
    taeda.nn.functional.elu(z, 1.5).sum().backward()
    assert taeda.allclose(gate.elu_slope(z.detach(), alpha=1.5), z.grad)
    assert gate.forward.__doc__.endswith("The gated unit\n")


def test_operators_by_their_schema() -> None:
    path = cpp_extension.load(
        "operators", str(SOURCES / "operators.cpp"), is_python_module=False
    )
    assert os.path.isfile(path)
    ops = taeda.ops.ported
    a, b = taeda.randn(2, 3), taeda.randn(3, 2).t()
    assert taeda.allclose(ops.fused(a, b, 2.0), a * b + 2)
    with pytest.raises(RuntimeError, match=r"a\.sizes\(\) == b\.sizes\(\)"):
        ops.fused(a, b[:1], 2.0)
    with pytest.raises(TypeError, match="fused: not float32"):
        ops.fused(a.double(), b.double(), 2.0)
    out = taeda.empty(2, 3)
    ops.add_into(a, b, out)
    assert taeda.equal(out, a + b)
    doubled, count = ops.counted(a, None)
    assert taeda.equal(doubled, a * 2) and count == 6
    assert taeda.equal(ops.counted(a, 0.5)[0], a / 2)
    assert ops.thrice(taeda.ones(2)).tolist() == [3.0, 3.0]
    x = taeda.randn(3, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(ops.squared, (x,))
    schema = str(ops.counted.default._schema)
    assert schema == "ported::counted(Tensor _0, float? _1) -> (Tensor, int)"


def test_values_of_every_kind(values) -> None:
    x = taeda.arange(6.0).reshape(2, 3)
    assert values.sum_of_rows(x.t()).tolist() == [3.0, 5.0, 7.0]
    assert values.sum_of_rows(x.double()).dtype is taeda.float64
    with pytest.raises(NotImplementedError, match="sum_of_rows"):
        values.sum_of_rows(x.long())
    made = values.made((2, 1), taeda.float64, True)
    assert made.tolist() == [[1.0], [1.0]]
    assert made.dtype is taeda.float64 and made.requires_grad
    assert values.constants().tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert values.where(x) == taeda.device("cpu")
    assert values.where(x.to("meta")).type == "meta"
    assert values.maybe(None) is None and values.maybe(x[:0]) is None
    assert values.maybe(x).tolist() == [0.0, 1.0, 2.0]
    for number in (3, 2.5, True, 1 + 2j):
        assert values.number(number) == number
        assert type(values.number(number)) is type(number)
    assert values.dtype(x.half()) is taeda.float16
    assert values.count([x, x]) == 2
    assert values.undefined() is None
    parameter = taeda.nn.Parameter(x)
    assert values.maybe(parameter).requires_grad


def test_errors_keep_their_type(values) -> None:
    with pytest.raises(ValueError, match="a value"):
        values.raise_as("value")
    with pytest.raises(IndexError, match="an index"):
        values.raise_as("index")
    with pytest.raises(RuntimeError, match="to be true, but got false"):
        values.raise_as("plain")
    with pytest.raises(RuntimeError, match="shape"):
        values.raise_as("")
    with pytest.raises(TypeError, match="incompatible function arguments"):
        values.count(["a"])


def test_inline_sources_are_built_anew_when_they_change(builds: Path) -> None:
    def build(number: int | str):
        return cpp_extension.load_inline(
            "inlined",
            f"#include <pybind11/pybind11.h>\nint answer() {{ return {number}; }}",
            functions=["answer"],
            no_implicit_headers=True,
        )

    first = build(41)
    (target,) = builds.glob("*/inlined/inlined.so")
    stamp = target.stat().st_mtime_ns
    assert build(41).answer() == 41
    assert target.stat().st_mtime_ns == stamp
    assert build(42).answer() == 42
    assert first.answer() == 41
    with pytest.raises(RuntimeError, match="(?s)Error building extension.*nowhere"):
        build("nowhere")


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((OSError, NotImplementedError), match="CUDA"):
        cpp_extension.CUDAExtension("a", ["a.cu"])
    with pytest.raises((OSError, NotImplementedError), match="CUDA"):
        cpp_extension.load("a", ["a.cpp", "a.cu"])
    with pytest.raises((OSError, NotImplementedError), match="CUDA"):
        cpp_extension.load_inline("a", "", cuda_sources="kernel")
    with pytest.raises((OSError, NotImplementedError), match="CUDA"):
        cpp_extension.include_paths("cuda")
    with pytest.raises(NotImplementedError, match="SYCL"):
        cpp_extension.library_paths("xpu")
    with pytest.raises(NotImplementedError, match="use_pch"):
        cpp_extension.load_inline("a", "", use_pch=True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert not cpp_extension.is_ninja_available()
    with pytest.raises(RuntimeError, match="Ninja is required"):
        cpp_extension.verify_ninja_availability()


def test_compilers_tell_what_they_are() -> None:
    assert cpp_extension.check_compiler_ok_for_platform("c++")
    good, version = cpp_extension.get_compiler_abi_compatibility_and_version("c++")
    assert good and str(version).split(".")[0].isdigit()
    assert not cpp_extension.check_compiler_is_gcc("no-such-compiler")
    assert (
        cpp_extension.get_compiler_abi_compatibility_and_version("no-such")[0] is False
    )


SETUP = """
from setuptools import setup
from taeda.utils.cpp_extension import BuildExtension, CppExtension
setup(
    name="ported_gate",
    ext_modules=[CppExtension("ported_gate.native", ["gate.cpp"],
                              extra_compile_args={"cxx": ["-O0"]})],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
)
"""


def test_a_package_with_a_setup_file(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "gate.cpp").write_text((SOURCES / "gate.cpp").read_text())
    folder = tmp_path / "ported_gate"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "native.so").exists()
    use = "import taeda, ported_gate.native as n; print(n.elu_slope(taeda.ones(1)))"
    command = [sys.executable, "-c", use]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "tensor([1.])\n", done.stderr
