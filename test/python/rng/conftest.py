"""Compiles C++ files of this folder, with the sources they test, for ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RANDOM_SOURCES = [
    "aten/native/cpu/distribution_fill.cpp",
    "aten/native/cpu/distribution_samplers.cpp",
    "aten/native/cpu/kernels/random.cpp",
    "c10/core/device.cpp",
    "c10/core/generator.cpp",
    "c10/util/check.cpp",
    "test/python/rng/distributions_shim.cpp",
]
# The one ISA level that such a library has is that of its flags.
LEVELS = {"baseline": (), "avx2": ("-march=haswell",)}


def build(
    name: str, sources: list[str], out: Path, flags: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """Compiles `sources` (relative to the repository) into `out`/`name`.so."""
    include = out / "include" / "taeda"
    include.mkdir(parents=True, exist_ok=True)
    for folder in ("c10", "aten"):
        link = include / folder
        if not link.exists():
            link.symlink_to(ROOT / folder)
    library = out / f"{name}.so"
    command = ["g++", "-std=c++20", "-O3", "-fPIC", "-shared", "-Wall", "-Werror"]
    command += ["-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math"]
    command += ["-DTAEDA_BASELINE_ONLY", *flags, f"-I{out / 'include'}"]
    command += [str(ROOT / source) for source in sources]
    subprocess.run([*command, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="session")
def build_shim() -> Callable[..., ctypes.CDLL]:
    """The function `build`, for tests that name sources of the repository."""
    return build


@pytest.fixture(scope="session", params=LEVELS)
def level_flags(request) -> tuple[str, ...]:
    """Compiler flags of each ISA level."""
    return LEVELS[request.param]


@pytest.fixture(scope="session")
def random_library(level_flags, tmp_path_factory) -> ctypes.CDLL:
    """Generators and distributions behind the entry points of the shim."""
    out = tmp_path_factory.mktemp("random")
    library = build("random", RANDOM_SOURCES, out, level_flags)
    library.generator_new.restype = ctypes.c_void_p
    library.generator_clone.restype = ctypes.c_void_p
    library.generator_initial_seed.restype = ctypes.c_uint64
    library.generator_random_seed.restype = ctypes.c_uint64
    library.generator_random.restype = ctypes.c_uint32
    library.default_generator_seed.restype = ctypes.c_uint64
    return library


class Generator:
    """A generator of the library under test, in step with torch's default one."""

    def __init__(self, library: ctypes.CDLL, pointer: int) -> None:
        self.library = library
        self.pointer = ctypes.c_void_p(pointer)

    def __del__(self) -> None:
        self.library.generator_delete(self.pointer)

    def seed(self, seed: int) -> None:
        self.library.generator_seed(self.pointer, ctypes.c_uint64(seed))

    def state(self) -> bytes:
        buffer = ctypes.create_string_buffer(5056)
        self.library.generator_get_state(self.pointer, buffer)
        return buffer.raw

    def restore(self, state: bytes) -> bool:
        size = ctypes.c_int64(len(state))
        return self.library.generator_set_state(self.pointer, state, size) == 0

    def random(self) -> int:
        return self.library.generator_random(self.pointer)

    def call(self, function: str, *arguments) -> None:
        """Calls `function`; tensors pass as pointers, ints as int64."""
        converted = []
        for argument in arguments:
            if isinstance(argument, float):
                converted.append(ctypes.c_double(argument))
            elif isinstance(argument, int):
                converted.append(ctypes.c_int64(argument))
            else:
                converted.append(ctypes.c_void_p(argument.data_ptr()))
        getattr(self.library, function)(self.pointer, *converted)


@pytest.fixture
def generator(random_library) -> Generator:
    """A new generator with the default seed."""
    pointer = random_library.generator_new(ctypes.c_uint64(67280421310721))
    return Generator(random_library, pointer)
