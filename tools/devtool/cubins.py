"""`tools/dev cubins`: the programs that are used most, compiled for GPUs, for a wheel.

Which ones that is comes from the records' calls: `device_operators.py` makes them on
the emulated device, which counts how often each program is launched. NVRTC compiles the
most frequent ones; `libtaeda_cuda.so` finds them in a file beside it
(aten/native/cuda/program_files.h).
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence

from devtool import cmake, emulate
from devtool.shell import ROOT, Failure

COUNT = 50
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
CALLS = "device_operators.py"


def hash_of(data: bytes, start: int = 0xCBF29CE484222325) -> int:
    """FNV-1a of 64 bits, as program_files.cpp has it."""
    for byte in data:
        start = (start ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return start


def text_key(text: bytes) -> str:
    """The part of a program's key that its text makes."""
    first = hash_of(text)
    return f"text {len(text)} {first:016x}{hash_of(text, first):016x}"


def pack(programs: Iterable[tuple[str, bytes]], file: pathlib.Path) -> None:
    """Writes (key, code) as libtaeda_cuda.so reads them."""
    with file.open("wb") as out:
        for key, code in programs:
            out.write(f"{key}\n{hash_of(code):016x} {len(code)}\n".encode() + code)


def most_launched(launches: str, count: int = COUNT) -> list[str]:
    """Names of the texts that were launched most, from lines "times name"."""
    total: dict[str, int] = {}
    for line in launches.splitlines():
        times, name = line.split()
        total[name] = total.get(name, 0) + int(times)
    return sorted(total, key=lambda name: (-total[name], name))[:count]


def headers_key(cache: pathlib.Path) -> str:
    """ "headers HASH" of this build, from a program that it kept on disk."""
    for file in (cache / "cuda").glob("*.cubin"):
        words = file.read_bytes().split(b"\n", 1)[0].decode().split()
        return f"headers {words[words.index('headers') + 1]}"
    raise Failure("cubins: no program was compiled")


def record(folder: pathlib.Path) -> tuple[list[bytes], str]:
    """The texts that the records' calls launch most, and the headers' key."""
    texts = folder / "texts"
    texts.mkdir()
    environment = os.environ | emulate.environment()
    environment |= {
        "TAEDA_EMULATOR_TEXTS": str(texts),
        "TAEDA_EMULATOR_LAUNCHES": str(folder / "launches"),
        "TAEDA_CACHE_DIR": str(folder),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", str(emulate.DEVICE_TEXT / CALLS)]
    done = subprocess.run(command, env=environment)
    if done.returncode != 0:
        raise Failure(f"cubins: {CALLS} failed on the emulated device")
    names = most_launched((folder / "launches").read_text())
    return [(texts / name).read_bytes() for name in names], headers_key(folder)


def compiled(text: bytes, architecture: str) -> bytes:
    """NVRTC's code, with the options of c10/cuda/nvrtc.cpp."""
    sys.path.insert(0, str(emulate.DEVICE_TEXT))
    import nvrtc

    options = ("--fmad=false", f"--gpu-architecture={architecture}")
    return nvrtc.Program("taeda_kernel.cu", text.decode(), options).cubin()


def main(arguments: Sequence[str]) -> int:
    """Writes the file beside the built library; prints its size."""
    if arguments:
        raise Failure("cubins: takes no arguments")
    out = cmake.build_dir() / "lib" / "taeda_cuda_programs.bin"
    with tempfile.TemporaryDirectory() as name:
        texts, headers = record(pathlib.Path(name))
    programs = (
        (f"taeda cuda 1 {a} {headers} {text_key(text)}", compiled(text, a))
        for a in ARCHITECTURES
        for text in texts
    )
    pack(programs, out)
    count = len(texts) * len(ARCHITECTURES)
    print(f"{out.relative_to(ROOT)}: {count} programs, {out.stat().st_size} bytes")
    return 0
