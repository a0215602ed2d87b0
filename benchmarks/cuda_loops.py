"""Bytes a second of the loop compiler's CUDA kernels on a GPU, beside its copy.

Usage: python benchmarks/cuda_loops.py [--peer]   (a GPU; test/python/cuda/gpu.py)

`copy` is the driver's copy of 1 GiB, bytes read and written. With `--peer` PyTorch's
eager calls of the same functions on the same GPU stand beside it, timed as ours:
the median of 20 runs, each by events on the device, of inputs larger than the cache.
Bytes are what a function has to read and write once; a function has two calls at
least, since a call alone is no kernel of the loop compiler's. `--contract` lets
NVRTC make one operation of a * b + c, which the CPU's kernels do not.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test/python/cuda"))

import taeda
from gpu import UNCONTRACTED, gpu

RUNS = 20
BLOCK = 1 << 24  # bytes of made-up numbers
SWITCHES = {"--peer": "PyTorch beside it", "--contract": "a * b + c as one"}


def add(F, x, y):
    return x + y * 2


def chain(F, x, y):
    return (x * y).tanh() * x.sigmoid() + (-y * y).exp()


def gelu(F, x, y):
    return F.gelu(x + 1)


def turned(F, x, y):
    return x.t() + y.t() * 2


def added_across(F, x, y):
    return x + y.t() * 2


def bias(F, x, y):
    return (x + y[0]).relu()


def total(F, x, y):
    return (x * 2).sum()


def rows(F, x, y):
    return (x * 2).sum(-1)


def columns(F, x, y):
    return (x * 2).sum(0)


def softmax(F, x, y):
    return F.softmax(x * 2, -1)


def layer_norm(F, x, y):
    return F.layer_norm(x * 2, x.shape[-1:], y[0], y[1])


CASES: list[tuple[Callable, tuple[int, int]]] = [
    (add, (8192, 16384)),
    (chain, (8192, 16384)),
    (gelu, (8192, 16384)),
    (bias, (8192, 16384)),
    (turned, (8192, 8192)),
    (added_across, (8192, 8192)),
    (total, (8192, 16384)),
    (rows, (8192, 16384)),
    (rows, (1 << 20, 128)),
    (rows, (16, 8 << 20)),
    (columns, (8192, 16384)),
    (columns, (1 << 20, 128)),
    (softmax, (32768, 1024)),
    (softmax, (8192, 8192)),
    (layer_norm, (32768, 1024)),
    (layer_norm, (8192, 8192)),
]


def fill(address: int, size: int) -> None:
    """Numbers from 1 to 2, of 16 or 32 bits."""
    random = np.random.default_rng(1).integers(0, 1 << 23, BLOCK // 4, np.uint32)
    numbers = random & np.uint32(0x007F007F) | np.uint32(0x3F803F80)
    gpu().write(address, numbers.ctypes.data, min(size, BLOCK))
    for start in range(BLOCK, size, BLOCK):
        gpu().copy(address + start, address, min(BLOCK, size - start))


def median(work: Callable[[], object]) -> float:
    for _ in range(3):
        work()
    return statistics.median(gpu().milliseconds(work) for _ in range(RUNS))


def size_of(look: tuple) -> int:
    name, sizes, strides = look
    reach = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    return reach * getattr(taeda, name).itemsize


def regions_of(function: Callable, inputs: list) -> list:
    from taeda import _compiler

    taeda.set_num_threads(1)
    compiled = _compiler.compile(function, lambda error: None)
    assert compiled.prepare(*inputs)
    (regions,) = compiled.regions()
    return regions


def ours(
    function: Callable, shape: tuple[int, int], dtype: str, options: tuple[str, ...]
) -> tuple[float, int]:
    """Milliseconds of a function's kernels, and how many launches they are."""
    inputs = [taeda.empty(shape, dtype=getattr(taeda, dtype)) for _ in range(2)]
    nn = taeda.nn.functional
    spent, launches = 0.0, 0
    for region in regions_of(lambda x, y: function(nn, x, y), inputs):
        code = region.cuda("kernel", gpu().processors)[0]
        module = gpu().module("kernel.cu", code["text"], options)
        looks = [*region.inputs, *region.outputs]
        memory = [gpu().allocate(size_of(look)) for look in looks]
        for address, look in zip(memory, looks, strict=True):
            fill(address, size_of(look))
        arguments = [memory[b] for b in region.buffers]
        if code["scratch_bytes"] > 0:
            arguments.append(gpu().allocate(code["scratch_bytes"]))
        values = [ctypes.c_uint64(a) for a in arguments]

        def work(code=code, module=module, values=values) -> None:
            for launch in code["launches"]:
                module.launch(launch["kernel"], launch["grid"], launch["block"], values)

        spent += median(work)
        launches += len(code["launches"])
        for address in {*memory, *arguments}:
            gpu().free(address)
    return spent, launches


def peer(function: Callable, shape: tuple[int, int], dtype: str) -> float:
    import torch

    kind = {"dtype": getattr(torch, dtype), "device": "cuda"}
    inputs = [torch.rand(shape, **kind) + 1 for _ in range(2)]
    with torch.no_grad():
        spent = median(lambda: function(torch.nn.functional, *inputs))
    return spent


def bytes_of(function: Callable, shape: tuple[int, int], dtype: str) -> int:
    element, count = getattr(taeda, dtype).itemsize, shape[0] * shape[1]
    if function in (total, rows, columns):
        return count * element
    reads = 2 if function in (add, chain, turned, added_across) else 1
    return (reads + 1) * count * element


def copy_rate() -> float:
    size = 1 << 30
    origin, to = gpu().allocate(size), gpu().allocate(size)
    fill(origin, size)
    spent = median(lambda: gpu().copy(to, origin, size))
    gpu().free(origin)
    gpu().free(to)
    return 2 * size / spent * 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for switch, says in SWITCHES.items():
        parser.add_argument(switch, help=says, action="store_true")
    args = parser.parse_args()
    options = () if args.contract else UNCONTRACTED
    copy = copy_rate()
    print(f"copy of 1 GiB: {copy:.0f} GB/s")
    for function, shape in CASES:
        for dtype in ("float32", "bfloat16"):
            name = f"{function.__name__} {shape[0]}x{shape[1]} {dtype}"
            spent, launches = ours(function, shape, dtype, options)
            if launches == 0:
                print(f"{name:38} no kernel")
                continue
            rate = bytes_of(function, shape, dtype) / spent * 1e-6
            line = f"{name:38} {spent:8.3f} ms {rate:6.0f} GB/s {rate / copy:5.2f}"
            line += f" of the copy, {launches} launches"
            if args.peer:
                other = peer(function, shape, dtype)
                line += f"; PyTorch {other:8.3f} ms, ratio {spent / other:.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
