"""Recurrent layers on a GPU: milliseconds of a step, forward and with gradients.

Usage: python benchmarks/cuda_recurrent.py [--peer] [--dtype float16] [--tiny]

LSTM and GRU of 64 sequences of 100 places, 512 columns, one layer and two layers of
both directions. `--peer` puts PyTorch's beside them, which calls cuDNN; `graph` replays
our forward pass as a CUDA graph, which shows what the host's side of launches costs.
Each is the median of 20 runs between events, in turns. `--tiny` is for emulated
devices.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import taeda
from cuda_gemm import medians

SHAPES = {"one layer": {}, "two, both ways": {"num_layers": 2, "bidirectional": True}}


def work_of(
    library, kind: str, dtype: str, sizes: tuple, gradients: bool, **options
) -> Callable[[], object]:
    """A call of one library's layer."""
    steps, batch, width = sizes
    layer = getattr(library.nn, kind)(width, width, **options)
    layer = layer.to("cuda", getattr(library, dtype))
    x = library.randn(steps, batch, width, device="cuda").to(getattr(library, dtype))
    if not gradients:
        layer.requires_grad_(False)
        return lambda: layer(x)[0]
    grad = library.randn_like(layer(x)[0])

    def step() -> None:
        layer.zero_grad()
        layer(x)[0].backward(grad)

    return step


def replayed(work: Callable[[], object]) -> Callable[[], object]:
    work()
    taeda.cuda.synchronize()
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        work()

    def replay(kept=work) -> None:  # whose tensors the graph reads
        graph.replay()

    return replay


def measure(kind: str, shape: str, gradients: bool, arguments) -> None:
    sizes = (3, 2, 8) if arguments.tiny else (100, 64, 512)
    given = (kind, arguments.dtype, sizes, gradients)
    works = {"taeda": work_of(taeda, *given, **SHAPES[shape])}
    if not gradients:
        works["graph"] = replayed(work_of(taeda, *given, **SHAPES[shape]))
    if arguments.peer:
        import torch

        works["torch"] = work_of(torch, *given, **SHAPES[shape])
    what = "with gradients" if gradients else "forward"
    for name, ms in medians(works).items():
        print(f"{kind:4} {shape:14} {what:14} {name:6} {ms:8.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    print(taeda.cuda.get_device_name(), arguments.dtype)
    for kind in ("LSTM", "GRU"):
        for shape in SHAPES:
            for gradients in (False, True):
                measure(kind, shape, gradients, arguments)


if __name__ == "__main__":
    main()
