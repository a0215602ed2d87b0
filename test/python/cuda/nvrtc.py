"""NVRTC, which compiles device text on machines without a GPU."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LANGUAGE = ("--std=c++20", "-default-device")
# Whether a source compiles does not depend on the optimiser, which takes most of the
# time: 23 s for all records' sources without it, about ten minutes with it.
QUICKLY = ("--Ofast-compile=max",)


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
        *(ROOT / f"c10/util/{n}.h" for n in ("half", "bfloat16", "float8")),
        *(ROOT / "aten/native/cuda").glob("*.cuh"),
        ROOT / "c10/core/philox.h",
    ]
    return {f"taeda/{p.relative_to(ROOT)}": p.read_bytes() for p in files}


class Program:
    """A source that NVRTC has compiled, or refused to."""

    def __init__(self, name: str, source: str, options: Sequence[str]) -> None:
        self._nvrtc, self._handle = library(), ctypes.c_void_p()
        files = headers()
        texts = (ctypes.c_char_p * len(files))(*files.values())
        names = (ctypes.c_char_p * len(files))(*[n.encode() for n in files])
        self._nvrtc.nvrtcCreateProgram(
            ctypes.byref(self._handle),
            *(source.encode(), name.encode(), len(files), texts, names),
        )
        given = [option.encode() for option in (*LANGUAGE, *options)]
        self.status = self._nvrtc.nvrtcCompileProgram(
            self._handle, len(given), (ctypes.c_char_p * len(given))(*given)
        )

    def _read(self, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._nvrtc, f"nvrtcGet{what}Size")(self._handle, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        getattr(self._nvrtc, f"nvrtcGet{what}")(self._handle, content)
        return content.raw

    def log(self) -> str:
        return self._read("ProgramLog").rstrip(b"\0").decode()

    def cubin(self) -> bytes:
        assert self.status == 0, self.log()
        return self._read("CUBIN")

    def __del__(self) -> None:
        self._nvrtc.nvrtcDestroyProgram(ctypes.byref(self._handle))


def compile_source(name: str, source: str, architecture: str = "sm_90") -> str:
    """The compiler's log; empty when the source compiled."""
    options = (f"--gpu-architecture={architecture}", *QUICKLY)
    program = Program(name, source, options)
    return (program.log() or f"status {program.status}") if program.status else ""
