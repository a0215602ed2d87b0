"""NVRTC compiles every function, unchanged, for sm_90."""

from __future__ import annotations

import ctypes
from pathlib import Path

from math_build import ROOT
from math_functions import (
    BINARY,
    COMPLEX,
    INTEGER_BINARY,
    SHARED_BINARY,
    SHARED_UNARY,
    TERNARY,
    UNARY,
)

OPTIONS = [b"--gpu-architecture=sm_90", b"--std=c++20"]


def load_nvrtc() -> ctypes.CDLL:
    import nvidia

    for root in nvidia.__path__:
        found = sorted(Path(root).glob("**/libnvrtc*.so*"))
        usable = [path for path in found if "alt" not in path.name]
        builtins = [path for path in usable if "builtins" in path.name]
        library = [path for path in usable if "builtins" not in path.name]
        if builtins and library:
            # By full path and first: NVRTC itself would not find it (error 7).
            ctypes.CDLL(str(builtins[0]), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(library[0]))
    raise RuntimeError("nvidia-cuda-nvrtc is installed without its libraries")


def headers() -> dict[str, str]:
    files = [*(ROOT / "aten/math").glob("*.h"), ROOT / "c10/util/complex.h"]
    return {f"taeda/{path.relative_to(ROOT)}": path.read_text() for path in files}


def kernel(name: str, arity: int, dtype: str) -> str:
    label = dtype.translate(str.maketrans(" :<>", "____"))
    arguments = ", ".join(f"{x}[i]" for x in "abc"[:arity])
    return (
        f"__global__ void {name}_{arity}_{label}({dtype}* out, const {dtype}* a, "
        f"const {dtype}* b, const {dtype}* c) {{ const int i = threadIdx.x; "
        f"out[i] = static_cast<{dtype}>(taeda::math::{name}({arguments})); }}"
    )


def source() -> str:
    lines = ["#include <taeda/aten/math/math.h>"]
    for dtype in ("float", "double"):
        lines += [kernel(name, 1, dtype) for name in UNARY + SHARED_UNARY]
        lines += [kernel(name, 2, dtype) for name in BINARY + SHARED_BINARY]
        lines += [kernel(name, 3, dtype) for name in TERNARY]
        complex_type = f"taeda::complex<{dtype}>"
        lines += [kernel(name, 1, complex_type) for name in COMPLEX]
        lines.append(kernel("pow", 2, complex_type))
    for dtype in ("signed char", "unsigned char", "int", "long long"):
        lines += [kernel(name, 2, dtype) for name in INTEGER_BINARY]
        lines += [kernel(name, 1, dtype) for name in ("abs", "sign", "sgn")]
    return "\n".join(lines)


def test_nvrtc_compiles_every_function() -> None:
    assert (len(SHARED_UNARY), len(SHARED_BINARY)) == (15, 18)
    nvrtc = load_nvrtc()
    files = headers()
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(files))(*[t.encode() for t in files.values()])
    names = (ctypes.c_char_p * len(files))(*[n.encode() for n in files])
    created = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source().encode(), b"math.cu", len(files), texts, names
    )
    assert created == 0
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == 0, log.value.decode()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    assert size.value > 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
