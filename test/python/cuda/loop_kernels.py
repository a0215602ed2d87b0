"""Runs the CUDA text of compiled functions' kernels, on the host or on a GPU."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import taeda
from gpu import UNCONTRACTED, gpu
from taeda import _compiler

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build"
FLAGS = ["-std=c++20", "-O0", "-fPIC", "-shared", "-fwrapv", "-w"]
GUARD = 16  # elements around a tensor, which no kernel may touch
# What roundings may come to, as a share of the largest number of a result.
SHARE = {
    taeda.float64: 1e-12,
    taeda.float32: 2e-5,
    taeda.float16: 1e-2,
    taeda.bfloat16: 5e-2,
}


def _fail(error: BaseException) -> None:
    raise error


def regions_of(function, inputs: Sequence[taeda.Tensor]) -> list:
    """The kernels of a function of tensors, forward and backward.

    For one CPU thread: with several, fusion leaves long sums to calls that share them.
    """
    before = taeda.get_num_threads()
    taeda.set_num_threads(1)
    try:
        compiled = _compiler.compile(function, _fail)
        assert compiled.prepare(*inputs)
        (regions,) = compiled.regions()
        return regions
    finally:
        taeda.set_num_threads(before)


@dataclass
class Case:
    """One text for one kernel of a compiled function."""

    what: str
    region: object
    code: dict


def cases_of(what: str, regions: Sequence, processors: int, prefix: str) -> list[Case]:
    cases = []
    for i, region in enumerate(regions):
        for code in region.cuda(f"{prefix}_{i}_{processors}", processors):
            cases.append(Case(f"{what}, region {i}, {processors}", region, code))
    return cases


def text_of(cases: Sequence[Case]) -> str:
    """All texts as one source; the prelude includes itself once."""
    return "\n".join(case.code["text"] for case in cases)


class HostLibrary:
    """The kernels as host code, each with a function that launches it."""

    # The threads of a block from the first to the last, and the other way round.
    orders = (0, 1)

    def __init__(self, text: str, cases: Sequence[Case], folder: Path) -> None:
        lines = ["#include <cstdint>", '#include "host_device.h"', text]
        for case in cases:
            for launch in case.code["launches"]:
                name = launch["kernel"]
                lines.append(
                    f'extern "C" void launch_{name}(void* const* arguments, unsigned '
                    "x, unsigned y, unsigned threads, int backwards) {\n"
                    f"  host_device::launch_kernel(taeda::{name}, {{x, y}}, threads, "
                    "backwards != 0, arguments);\n}"
                )
        source, made = folder / "loops.cpp", folder / "loops.so"
        source.write_text("\n".join(lines) + "\n")
        command = [os.environ.get("CXX", "g++"), *FLAGS, f"-I{HERE}"]
        command += [f"-I{BUILD}/include", source, "-o", made]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr[-4000:]
        self._code = ctypes.CDLL(str(made))

    def launch(self, launches: Sequence[dict], tensors: list, order: int) -> None:
        addresses = [t.data_ptr() for t in tensors]
        arguments = (ctypes.c_void_p * len(addresses))(*addresses)
        for launch in launches:
            entry = getattr(self._code, f"launch_{launch['kernel']}")
            entry(arguments, *launch["grid"], launch["block"], order)


class GpuLibrary:
    """The kernels as code of a GPU, over copies of the tensors' whole memory."""

    orders = (0,)

    def __init__(self, text: str, cases: Sequence[Case], folder: Path) -> None:
        self._code = gpu().module("loops.cu", text, UNCONTRACTED)

    def launch(self, launches: Sequence[dict], tensors: list, order: int) -> None:
        memory = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
        there = {host: gpu().allocate(s.nbytes()) for host, s in memory.items()}
        for host, storage in memory.items():
            gpu().write(there[host], host, storage.nbytes())
        arguments = []
        for t in tensors:
            host = t.untyped_storage().data_ptr()
            arguments.append(ctypes.c_void_p(there[host] + t.data_ptr() - host))
        for launch in launches:
            kernel, grid, block = launch["kernel"], launch["grid"], launch["block"]
            self._code.launch(kernel, grid, block, arguments)
        for host, storage in memory.items():
            gpu().read(host, there[host], storage.nbytes())
            gpu().free(there[host])


def _guarded(look: tuple, shift: int = 0) -> tuple[taeda.Tensor, taeda.Tensor]:
    """A tensor of that look within a larger one, full of a pattern."""
    name, sizes, strides = look
    dtype = getattr(taeda, name)
    pairs = zip(sizes, strides, strict=True)
    reach = 1 + sum((n - 1) * step for n, step in pairs)
    around = taeda.full((reach + 2 * GUARD + shift,), 1, dtype=dtype)
    return around, taeda.as_strided(around, sizes, strides, GUARD + shift)


def _inputs(region, seed: int, shift: int) -> list[taeda.Tensor]:
    """Numbers of any sign by which one can divide: floats not near 0, 1 to 7."""
    taeda.manual_seed(seed)
    made = []
    for look in region.inputs:
        around, tensor = _guarded(look, shift)
        if tensor.dtype == taeda.bool:
            values = taeda.randint(0, 2, around.shape)
        elif tensor.dtype.is_floating_point:
            values = taeda.randn(around.shape)
            values = taeda.where(values < 0, values - 0.5, values + 0.5)
        else:
            values = taeda.randint(1, 8, around.shape)
        around.copy_(values)  # all of it: elements of `tensor` may be one
        made.append(tensor)
    return made


def _launch(library, code: dict, tensors: list, order: int) -> None:
    tensors = list(tensors)
    assert all(t.data_ptr() % code["alignment"] == 0 for t in tensors)
    if code["scratch_bytes"] > 0:
        tensors.append(taeda.full((code["scratch_bytes"],), 255, dtype=taeda.uint8))
    library.launch(code["launches"], tensors, order)


def _difference(got: taeda.Tensor, want: taeda.Tensor) -> str:
    """What is wrong with a result; empty where nothing is."""
    if not got.dtype.is_floating_point:
        return "" if taeda.equal(got, want) else "other numbers"
    got, want, share = got.double(), want.double(), SHARE[got.dtype]
    finite = taeda.where(taeda.isfinite(want), want, 0.0)
    bound = share * max(1.0, finite.abs().max().item())
    if taeda.allclose(got, want, rtol=share, atol=bound, equal_nan=True):
        return ""
    return f"differs by {(got - want).abs().max().item()}, bound {bound}"


def run(library, case: Case, order: int) -> str:
    """Runs a text and the calls that it stands for; how they differ."""
    region, code = case.region, case.code
    inputs = _inputs(region, seed=7, shift=1 if code["alignment"] == 1 else 0)
    expected = region.run([t.clone() for t in inputs])
    outputs = [_guarded(look) for look in region.outputs]
    for around, _ in outputs:
        around.fill_(1)
    tensors = [*inputs, *(inner for _, inner in outputs)]
    _launch(library, code, [tensors[b] for b in region.buffers], order)
    found = ""
    for (around, got), want in zip(outputs, expected, strict=True):
        wrong = _difference(got, want)
        for edge in (around[:GUARD], around[-GUARD:]):
            if not taeda.equal(edge, taeda.ones_like(edge)):
                wrong += "; writes beyond the result"
        if wrong:
            found += f"{case.what}, order {order}: {wrong}\n"
    return found
