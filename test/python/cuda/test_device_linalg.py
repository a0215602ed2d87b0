"""Linear algebra on emulated devices, and its kernels by NVRTC."""

from __future__ import annotations

import pytest
from emulated import run
from nvrtc import compile_source
from test_device_kernels import ARCHITECTURES

KERNELS = {
    "factors": "cholesky lu solve triangles reflections orthogonal".split(),
    "spectra": "eigen singular".split(),
}
SPARSE = ("sparse_rows_kernel", "sparse_vector_kernel", "sampled_kernel")
# Threads, and elements in shared memory, of which a block has some 46 KiB.
SHAPES = {"float": 11776, "double": 5888, "complex<float>": 5888}
SHAPES["complex<double>"] = 2944


@pytest.mark.parametrize("share", range(2))
def test_on_emulated_devices(share: int) -> None:
    run("device_linalg.py", (share, 2))


def test_sparse_products_on_emulated_devices() -> None:
    run("device_sparse.py")


@pytest.mark.parametrize("stored", ["Half", "BFloat16", *SHAPES])
def test_sparse_texts_compile(stored: str) -> None:
    calls = [
        f'extern "C" __launch_bounds__(128) __global__ void k{i}{len(index)}('
        "const __grid_constant__ SparseCall call) {"
        f" {kernel}<{stored}, {index}>(call); }}"
        for i, kernel in enumerate(SPARSE)
        for index in ("int", "Long")
    ]
    include = "#include <taeda/aten/native/cuda/sparse_rows.cuh>"
    text = "\n".join([include, "namespace taeda {", *calls, "}"])
    assert compile_source("sparse_rows.cu", text, ARCHITECTURES[0]) == ""


@pytest.mark.parametrize("stored", SHAPES)
@pytest.mark.parametrize("header", KERNELS)
def test_texts_compile(header: str, stored: str) -> None:
    most = SHAPES[stored]
    if header == "spectra":  # which computes in double
        most = SHAPES["complex<double>" if "complex" in stored else "double"]
    calls = []
    for kernel in KERNELS[header]:
        for threads, elements in ((32, 1088), (128, most), (128, 0)):
            calls.append(
                f'extern "C" __launch_bounds__({threads}) __global__ void '
                f"k{len(calls)}(const __grid_constant__ FactorCall call) {{"
                f" {kernel}_kernel<{stored}, {threads}, {elements}>(call); }}"
            )
    include = f"#include <taeda/aten/native/cuda/{header}.cuh>"
    text = "\n".join([include, "namespace taeda {", *calls, "}"])
    architecture = ARCHITECTURES[list(SHAPES).index(stored) % len(ARCHITECTURES)]
    assert compile_source(f"{header}.cu", text, architecture) == ""
