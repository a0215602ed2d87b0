"""Repeats on a GPU what `host_calls.h` wrote of kernels' calls on the host."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gpu import Gpu, Module


@dataclass
class Call:
    """A kernel's arguments, and which elements of the result were what."""

    kernel: str
    blocks: int
    threads: int
    arguments: list[tuple[bool, bytes]]  # whether it is memory
    results: np.ndarray
    places: np.ndarray


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def __bool__(self) -> bool:
        return self._at < len(self._content)

    def number(self) -> int:
        (value,) = struct.unpack("<I", self.raw(4))
        return value

    def raw(self, size: int) -> bytes:
        self._at += size
        assert self._at <= len(self._content)
        return self._content[self._at - size : self._at]


def read_calls(file: Path) -> Iterator[Call]:
    read = _Reader(file.read_bytes())
    while read:
        kernel = read.raw(read.number()).decode()
        blocks, threads = read.number(), read.number()
        arguments = []
        for _ in range(read.number()):
            memory = bool(read.number())
            arguments.append((memory, read.raw(read.number())))
        kind, element = chr(read.number()), read.number()
        places = np.frombuffer(read.raw(4 * (count := read.number())), np.int32)
        results = np.frombuffer(read.raw(count * element), f"{kind}{element}")
        yield Call(kernel, blocks, threads, arguments, results, places)


def on_gpu(gpu: Gpu, code: Module, call: Call) -> np.ndarray:
    """What the kernel gives at the places of the results.

    It writes its first memory; a reduction reads that and writes the second.
    """
    values, memory = [], []
    for is_memory, content in call.arguments:
        if is_memory:
            address = gpu.allocate(len(content))
            gpu.write(
                address, ctypes.cast(content, ctypes.c_void_p).value, len(content)
            )
            memory.append((address, len(content)))
            values.append(ctypes.c_uint64(address))
        else:
            values.append(ctypes.create_string_buffer(content, len(content)))
    code.launch(call.kernel, (call.blocks, 1), call.threads, values)
    written = int(call.kernel.startswith("r_"))
    address, size = memory[written]
    got = np.empty(size // call.results.dtype.itemsize, call.results.dtype)
    gpu.read(got.ctypes.data, address, size)
    for address, _ in memory:
        gpu.free(address)
    return got[call.places]


def difference(got: np.ndarray, want: np.ndarray) -> str:
    """How many elements have other bits, and the first of them; empty: none.

    NaNs are equal, and so are zeros of both signs.
    """
    same = (got == want) | ((got != got) & (want != want))
    if want.dtype.kind == "c":
        for part in (np.real, np.imag):
            a, b = part(got), part(want)
            same_part = (a == b) | ((a != a) & (b != b))
            same = same_part if part is np.real else same & same_part
    if same.all():
        return ""
    at = int(np.flatnonzero(~same)[0])
    return f"{(~same).sum()} of {same.size}, first {got[at]!r} for {want[at]!r}"
