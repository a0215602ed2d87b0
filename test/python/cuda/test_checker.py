"""The emulator's memory checker: what it finds, and how it names it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
from emulated import environment

# A kernel of one parameter, given to the driver's functions themselves; the blocks
# are what an allocator would tell of.
DRIVER = """
import ctypes, os, sys
emulator = ctypes.CDLL(os.environ["TAEDA_CUDA_DRIVER"])
def call(name, *arguments):
    return getattr(emulator, name)(*arguments)
place, pointer = ctypes.c_uint64, ctypes.c_void_p
segment = place()
assert call("cuMemAlloc_v2", ctypes.byref(segment), ctypes.c_size_t(16384)) == 0
def block(at, size):
    address = place(segment.value + at)
    assert call("taedaBlockTaken", address, ctypes.c_size_t(size), None) == 0
    return address
class Call(ctypes.Structure):
    _fields_ = [("to", place), ("origin", place), ("count", ctypes.c_int64)]
text = '''
struct Call { float* to; const float* origin; long long count; };
namespace taeda {
extern "C" __global__ void BODY_kernel(const Call c) {
  long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < c.count) { BODY; }
}
}
'''.replace("BODY_kernel", "tried_kernel").replace("BODY", sys.argv[1])
program, size = pointer(), ctypes.c_size_t()
call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"", 0, None, None)
assert call("nvrtcCompileProgram", program, 0, None) == 0
call("nvrtcGetCUBINSize", program, ctypes.byref(size))
code = ctypes.create_string_buffer(size.value)
call("nvrtcGetCUBIN", program, code)
module, kernel = pointer(), pointer()
assert call("cuModuleLoadData", ctypes.byref(module), code) == 0
found = call("cuModuleGetFunction", ctypes.byref(kernel), module, b"tried_kernel")
assert found == 0
def launch(to, origin, count):
    given = Call(to.value, origin.value, count)
    parameters = (pointer * 1)(ctypes.addressof(given))
    shape = (2, 1, 1, 8, 1, 1, 0, None)
    assert call("cuLaunchKernel", kernel, *shape, parameters, None) == 0
    text = ctypes.c_char_p()
    status = call("cuCtxSynchronize")
    call("cuGetErrorString", status, ctypes.byref(text))
    print(status, text.value.decode())
"""


def tried(body: str, program: str, tmp_path: Path) -> list[str]:
    """What each launch of a kernel with this body says."""
    command = [sys.executable, "-c", DRIVER + program, body]
    reports = tmp_path / "reports"
    taken = environment() | {"TAEDA_EMULATOR_REPORTS": str(reports)}
    done = subprocess.run(command, env=taken, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    wrong = [line.split(": ", 1)[1] for line in said if line.startswith("700 ")]
    written = reports.read_text().splitlines() if reports.exists() else []
    assert written == wrong and all(line in done.stderr for line in wrong)
    return said


FILLED = """
a, b = block(0, 40), block(512, 40)
call("cuMemsetD8Async", b, 0, ctypes.c_size_t(40), None)
launch(a, b, {})
launch(a, b, 10)
"""


def test_accesses_within_blocks_are_right(tmp_path: Path) -> None:
    assert tried("c.to[i] = c.origin[i]", FILLED.format(5), tmp_path) == [
        "0 no error",
        "0 no error",
    ]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("c.to[i] = c.origin[i + 1]", "reads 4 bytes 0 bytes behind a block of 40"),
        ("c.to[i + 2] = c.origin[i]", "writes 4 bytes 0 bytes behind a block of 40"),
        ("c.to[i] = c.origin[i + 1900]", "reads 4 bytes in no block"),
    ],
)
def test_what_is_out_of_bounds_is_named(body: str, what: str, tmp_path: Path) -> None:
    wrong, _ = tried(body, FILLED.format(10), tmp_path)
    assert wrong.startswith("700 an illegal memory access was encountered: tried_k")
    assert what in wrong
    if "+ 1]" in body:
        assert "block (1, 0), thread 1 " in wrong


def test_neighbours_are_told_apart_by_red_zones(tmp_path: Path) -> None:
    """Blocks side by side, as without red zones, hide what red zones show."""
    beside = """
a, b = block(0, 40), block(GAP, 40)
for one in (a, b):
    call("cuMemsetD8Async", one, 0, ctypes.c_size_t(40), None)
launch(a, b, 10)
"""
    body = "c.to[i + 1] = 1"
    assert tried(body, beside.replace("GAP", "40"), tmp_path) == ["0 no error"]
    (wrong,) = tried(body, beside.replace("GAP", "512"), tmp_path)
    assert "writes 4 bytes 0 bytes behind a block of 40 bytes" in wrong


def test_what_nothing_has_written_may_not_be_read(tmp_path: Path) -> None:
    program = """
a, b = block(0, 40), block(512, 40)
call("cuMemsetD8Async", b, 0, ctypes.c_size_t(36), None)
launch(a, b, 9)
launch(a, b, 10)
launch(b, a, 9)
launch(b, a, 9)
assert call("taedaBlockFreed", b, ctypes.c_size_t(512), None) == 0
launch(a, b, 1)
block(512, 40)
launch(a, b, 1)
"""
    said = tried("c.to[i] = c.origin[i]", program, tmp_path)
    assert [line.split()[0] for line in said] == ["0", "700", "0", "0", "700", "700"]
    assert "thread 1 reads 4 bytes at byte 36 of a block of 40 bytes, which" in said[1]
    assert "reads 4 bytes 472 bytes behind a block of 40" in said[4]
    assert "at byte 0 of a block of 40 bytes, which nothing has written" in said[5]


def test_functions_are_there_for_the_allocator() -> None:
    library = ctypes.CDLL(environment()["TAEDA_CUDA_DRIVER"])
    size = ctypes.c_size_t()
    assert library.taedaRedZone(ctypes.byref(size)) == 0 and size.value == 512
