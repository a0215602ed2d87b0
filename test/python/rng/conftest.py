"""Compiles C++ files of this folder, with the sources they test, for ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Compiled once, without the flags of an ISA level, as in the product.
COMMON_SOURCES = [
    "aten/native/cpu/distribution_fill.cpp",
    "aten/native/cpu/distribution_samplers.cpp",
    "c10/core/device.cpp",
    "c10/core/generator.cpp",
    "c10/util/check.cpp",
    "test/python/rng/distributions_shim.cpp",
]
KERNEL_SOURCE = "aten/native/cpu/kernels/random.cpp"
KERNEL_FLAGS = ("-O3", "-fno-math-errno", "-fno-trapping-math")
LEVELS = {"baseline": (), "avx2": ("-mavx2", "-mfma", "-mf16c")}


def run_compiler(out: Path, *arguments: str) -> None:
    """Calls g++ with the repository as the include folder <taeda/...>."""
    include = out / "include" / "taeda"
    include.mkdir(parents=True, exist_ok=True)
    for folder in ("c10", "aten"):
        link = include / folder
        if not link.exists():
            link.symlink_to(ROOT / folder)
    command = ["g++", "-std=c++20", "-fPIC", "-Wall", "-Werror"]
    command += ["-fvisibility=hidden", "-DTAEDA_BASELINE_ONLY"]
    command += [f"-I{out / 'include'}", *arguments]
    subprocess.run(command, check=True)


@pytest.fixture(scope="session", params=LEVELS)
def level_flags(request) -> tuple[str, ...]:
    """Compiler flags of each ISA level."""
    return LEVELS[request.param]


@pytest.fixture(scope="session")
def float_library(level_flags, tmp_path_factory) -> ctypes.CDLL:
    """The storage floats' conversions, compiled for one ISA level."""
    out = tmp_path_factory.mktemp("float_types")
    library = out / "float_types.so"
    source = ROOT / "test/python/rng/float_types_shim.cpp"
    flags = (*KERNEL_FLAGS, *level_flags, "-shared")
    run_compiler(out, *flags, str(source), "-o", str(library))
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="session")
def common_objects(tmp_path_factory) -> list[str]:
    """Objects of everything random but the kernels."""
    out = tmp_path_factory.mktemp("common")
    objects = []
    for source in COMMON_SOURCES:
        objects.append(str(out / f"{Path(source).stem}.o"))
        run_compiler(out, "-O1", "-c", str(ROOT / source), "-o", objects[-1])
    return objects


@pytest.fixture(scope="session")
def random_library(level_flags, common_objects, tmp_path_factory) -> ctypes.CDLL:
    """Generators and distributions behind the entry points of the shim."""
    out = tmp_path_factory.mktemp("random")
    kernel = str(out / "kernel.o")
    source = str(ROOT / KERNEL_SOURCE)
    run_compiler(out, *KERNEL_FLAGS, *level_flags, "-c", source, "-o", kernel)
    run_compiler(out, "-shared", *common_objects, kernel, "-o", f"{out}/random.so")
    library = ctypes.CDLL(f"{out}/random.so")
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
