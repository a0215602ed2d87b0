"""Bytes a second of the kernels written by hand on a GPU, beside its copy.

Usage: python benchmarks/cuda_kernels.py [--peer] [--only NAME] [--tiny]

`copy` is `copy_` of 1 GiB, bytes read and written. Bytes of a case are what it has to
read and write once, so that the share of the copy says how far from memory's speed it
is; a case's time is the median of 20 runs by events. `--peer` puts PyTorch's calls of
the same beside it. `--tiny` tries every case on small tensors, as on an emulated device
(`tools/dev emulate`), where times mean nothing.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from collections.abc import Callable
from types import ModuleType

RUNS = 20
WARM = 3


class Bench:
    """Cases over a library with PyTorch's API; each gives work and its bytes."""

    def __init__(self, lib: ModuleType, tiny: bool) -> None:
        self.lib, self.tiny = lib, tiny
        self.functional = importlib.import_module(f"{lib.__name__}.nn.functional")

    def rows(self, rows: int, count: int, dtype: str):
        if self.tiny:
            rows, count = min(rows, 3), min(count, 70)
        x = self.lib.randn(rows, count, device="cuda")
        return x.to(getattr(self.lib, dtype))

    def median(self, work: Callable[[], object]) -> float:
        events = self.lib.cuda.Event
        spent = []
        for _ in range(1 if self.tiny else RUNS + WARM):
            begin, end = events(enable_timing=True), events(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            spent.append(begin.elapsed_time(end))
        return statistics.median(spent[-RUNS:])

    def copy(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        y = self.lib.empty_like(x)
        return lambda: y.copy_(x), 2 * size(x)

    def softmax(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        return lambda: self.functional.softmax(x, -1), 2 * size(x)

    def log_softmax(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        return lambda: self.functional.log_softmax(x, -1), 2 * size(x)

    def softmax_backward(self, *shape: int, dtype: str):
        g, y = self.rows(*shape, dtype), self.rows(*shape, dtype)
        back = self.lib.ops.aten._softmax_backward_data
        return lambda: back(g, y, -1, y.dtype), 3 * size(g)

    def layer_norm(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        w, b = x[0].clone(), x[-1].clone()
        return lambda: self.functional.layer_norm(x, w.shape, w, b), 2 * size(x)

    def rms_norm(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        w = x[0].clone()
        return lambda: self.functional.rms_norm(x, w.shape, w), 2 * size(x)

    def layer_norm_backward(self, *shape: int, dtype: str):
        """Gradients of the input, and of factors and summands: two passes."""
        x, g = self.rows(*shape, dtype), self.rows(*shape, dtype)
        w, b = x[0].clone(), x[-1].clone()
        _, mean, rstd = self.lib.native_layer_norm(x, w.shape, w, b, 1e-5)
        back = self.lib.ops.aten.native_layer_norm_backward
        mask = [True, True, True]
        return lambda: back(g, x, w.shape, mean, rstd, w, b, mask), 5 * size(x)

    def cross_entropy(self, *shape: int, dtype: str):
        x = self.rows(*shape, dtype)
        target = self.lib.arange(len(x), device="cuda") % x.shape[1]
        return lambda: self.functional.cross_entropy(x, target), size(x)

    def batch_norm(self, *shape: int, dtype: str):
        """Channels of 56 x 56 planes; two reads and a write."""
        x = self.rows(*shape, dtype)
        side = 2 if self.tiny else 56
        x = x.reshape(-1)[: x.numel() // (8 * side**2) * 8 * side**2]
        x = x.view(-1, 8, side, side)
        norm = self.functional.batch_norm
        return lambda: norm(x, None, None, training=True), 3 * size(x)

    def adamw(self, *shape: int, dtype: str):
        """Reads of parameter, gradient and two of state; writes of three."""
        params = [self.rows(*shape, dtype) for _ in range(4)]
        for p in params:
            p.requires_grad_().grad = self.lib.ones_like(p)
        step = self.lib.optim.AdamW(params, fused=True).step
        step()
        return step, 7 * 4 * size(params[0])

    def foreach_norm(self, *shape: int, dtype: str):
        tensors = [self.rows(*shape, dtype) for _ in range(4)]
        return lambda: self.lib._foreach_norm(tensors), 4 * size(tensors[0])

    def sort(self, *shape: int, dtype: str):
        """Bytes of the elements and the places alone: passes cost the rest."""
        x = self.rows(*shape, dtype)
        return lambda: self.lib.sort(x, -1), 2 * size(x) + 8 * x.numel()

    def embedding_backward(self, *shape: int, dtype: str):
        g = self.rows(*shape, dtype)
        places = self.lib.randint(0, 50257, (len(g),), device="cuda")
        back = self.lib.ops.aten.embedding_dense_backward
        written = 50257 * g.shape[1] * g.element_size()
        return lambda: back(g, places, 50257, -1, False), size(g) + written


def size(t) -> int:
    return t.numel() * t.element_size()


SHAPES: dict[str, list[tuple[int, int]]] = {
    "copy": [(8192, 32768)],
    "softmax": [
        (1 << 20, 64),
        (32768, 1024),
        (8192, 8192),
        (4096, 50257),
        (1, 1 << 24),
    ],
    "log_softmax": [(32768, 1024)],
    "softmax_backward": [(32768, 1024), (8192, 8192)],
    "layer_norm": [(65536, 768), (16384, 4096)],
    "rms_norm": [(65536, 768), (16384, 4096)],
    "layer_norm_backward": [(65536, 768), (16384, 4096)],
    "cross_entropy": [(16384, 50257)],
    "batch_norm": [(32768, 1568)],
    "adamw": [(4096, 8192)],
    "foreach_norm": [(4096, 8192)],
    "sort": [(16384, 2048), (16, 1 << 20), (1, 1 << 24)],
    "embedding_backward": [(16384, 768)],
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="a part of the cases' names")
    for flag, meaning in (("peer", "PyTorch beside it"), ("tiny", "small tensors")):
        options.add_argument(f"--{flag}", action="store_true", help=meaning)
    args = options.parse_args()
    benches = [Bench(importlib.import_module("taeda"), args.tiny)]
    if args.peer:
        benches.append(Bench(importlib.import_module("torch"), args.tiny))
    work, moved = benches[0].copy(8192, 32768, dtype="float32")
    copy = moved / benches[0].median(work)
    print(f"copy of 1 GiB: {copy * 1e-6:.0f} GB/s")
    for name, shapes in SHAPES.items():
        if args.only not in name:
            continue
        for shape in shapes:
            for dtype in ("float32", "bfloat16"):
                line = f"{name} {shape[0]}x{shape[1]} {dtype}".ljust(44)
                for bench in benches:
                    work, moved = getattr(bench, name)(*shape, dtype=dtype)
                    spent = bench.median(work)
                    line += f" {spent:8.3f} ms {moved / spent / copy:5.2f} of the copy"
                print(line, flush=True)


if __name__ == "__main__":
    main()
