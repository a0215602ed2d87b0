"""Every generated device source compiles with NVRTC for sm_90."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Whether a source compiles does not depend on the optimiser, which takes most of the
# time: 23 s for all sources without it, about ten minutes with it.
OPTIONS = [
    b"--gpu-architecture=sm_90",
    b"--std=c++20",
    b"-default-device",
    b"--Ofast-compile=max",
]


def nvrtc_library() -> ctypes.CDLL:
    """NVRTC from its package; its built-ins must be loaded first, by full path."""
    import nvidia

    for root in nvidia.__path__:
        found = [
            p
            for p in sorted(Path(root).glob("**/libnvrtc*.so*"))
            if "alt" not in p.name
        ]
        builtins = [p for p in found if "builtins" in p.name]
        library = [p for p in found if "builtins" not in p.name]
        if builtins and library:
            ctypes.CDLL(str(builtins[0]), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(library[0]))
    raise RuntimeError("nvidia-cuda-nvrtc is installed without its libraries")


def headers() -> dict[str, bytes]:
    """Include name to text of everything that the sources include."""
    files = [
        *(ROOT / "aten/math").glob("*.h"),
        ROOT / "c10/util/complex.h",
        ROOT / "aten/native/cuda/prelude.cuh",
    ]
    return {f"taeda/{p.relative_to(ROOT)}": p.read_bytes() for p in files}


def compile_source(nvrtc: ctypes.CDLL, name: str, source: str) -> str:
    """The compiler's log; empty when the source compiled."""
    files = headers()
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(files))(*files.values())
    names = (ctypes.c_char_p * len(files))(*[n.encode() for n in files])
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), name.encode(), len(files), texts, names
    )
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    status = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if status else ""


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
    nvrtc = nvrtc_library()
    paths = sources(generated)
    assert len(paths) > 100
    logs = {p.name: compile_source(nvrtc, p.name, p.read_text()) for p in paths}
    failed = {name: log.splitlines()[:3] for name, log in logs.items() if log}
    assert not failed


def test_a_mistake_is_reported() -> None:
    prelude = "#include <taeda/aten/native/cuda/prelude.cuh>\n"
    log = compile_source(nvrtc_library(), "wrong.cu", prelude + "int f() { return x; }")
    assert "wrong.cu" in log and '"x" is undefined' in log
