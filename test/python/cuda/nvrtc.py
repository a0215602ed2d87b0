"""NVRTC, which compiles device text on machines without a GPU."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Whether a source compiles does not depend on the optimiser, which takes most of the
# time: 23 s for all records' sources without it, about ten minutes with it.
OPTIONS = [b"--std=c++20", b"-default-device", b"--Ofast-compile=max"]


@functools.cache
def library() -> ctypes.CDLL:
    """NVRTC from its package; its built-ins must be loaded first, by full path."""
    import nvidia

    for root in nvidia.__path__:
        found = [
            p
            for p in sorted(Path(root).glob("**/libnvrtc*.so*"))
            if "alt" not in p.name
        ]
        builtins = [p for p in found if "builtins" in p.name]
        nvrtc = [p for p in found if "builtins" not in p.name]
        if builtins and nvrtc:
            ctypes.CDLL(str(builtins[0]), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(nvrtc[0]))
    raise RuntimeError("nvidia-cuda-nvrtc is installed without its libraries")


@functools.cache
def headers() -> dict[str, bytes]:
    """Include name to text of everything that the sources include."""
    files = [
        *(ROOT / "aten/math").glob("*.h"),
        *(ROOT / f"c10/util/{n}.h" for n in ("complex", "small_float")),
        *(ROOT / f"c10/util/{n}.h" for n in ("half", "bfloat16")),
        *(ROOT / "aten/native/cuda").glob("*.cuh"),
    ]
    return {f"taeda/{p.relative_to(ROOT)}": p.read_bytes() for p in files}


def compile_source(name: str, source: str, architecture: str = "sm_90") -> str:
    """The compiler's log; empty when the source compiled."""
    nvrtc = library()
    files = headers()
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(files))(*files.values())
    names = (ctypes.c_char_p * len(files))(*[n.encode() for n in files])
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), name.encode(), len(files), texts, names
    )
    given = [f"--gpu-architecture={architecture}".encode(), *OPTIONS]
    options = (ctypes.c_char_p * len(given))(*given)
    status = nvrtc.nvrtcCompileProgram(program, len(given), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return (log.value.decode() or f"status {status}") if status else ""
