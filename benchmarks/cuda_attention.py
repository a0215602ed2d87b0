"""Attention on a GPU: TFLOP/s by width of heads and length, forward and with gradients.

Usage: python benchmarks/cuda_attention.py [--peer] [--dtype float16]   (needs a GPU)

16,384 queries in all, 2,048 columns over all heads, as in "FlashAttention-2" (T. Dao,
2023). Work is counted as there: 4 L S D forward for each head, 2.5 times as much
backward, half of both with a causal mask. `math` is products and softmax; with
`--peer` PyTorch's stands beside them, by the kernel that it chooses. Each is the median
of 20 runs between events, after 5 that are left out, in turns (A B A B).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import taeda
from cuda_gemm import medians

QUERIES, COLUMNS = 16384, 2048
WIDTHS = (64, 128, 256)
LENGTHS = (512, 2048, 8192)
# Beyond this the matrix of all scores takes several GiB.
MOST_OF_MATH = 2048


def work_of(
    library, way: str, dtype: str, sizes: tuple, causal: bool, gradients: bool
) -> Callable[[], object]:
    """A call of one library's attention on values of its own."""
    attend = library.nn.functional.scaled_dot_product_attention
    attention, kind = library.nn.attention, getattr(library, dtype)
    batch, heads, length, width = sizes
    # As layers make them: heads are split from [batch, length, columns].
    made = library.randn(3, batch, length, heads, width, device="cuda").to(kind)
    inputs = [t.transpose(1, 2).requires_grad_(gradients) for t in made.unbind()]

    def forward():
        if way == "math":
            with attention.sdpa_kernel(attention.SDPBackend.MATH):
                return attend(*inputs, is_causal=causal)
        return attend(*inputs, is_causal=causal)

    if not gradients:
        return forward
    grad = library.randn_like(forward())

    def step() -> None:
        forward().backward(grad)
        for t in inputs:
            t.grad = None

    return step


def measure(width: int, length: int, causal: bool, gradients: bool, given) -> None:
    heads = COLUMNS // width
    sizes = (QUERIES // length, heads, length, width)
    works = {}
    for name, (library, way) in given.items():
        if way == "fused" or length <= MOST_OF_MATH:
            works[name] = work_of(library, way, given.dtype, sizes, causal, gradients)
    flops = 4 * sizes[0] * heads * length**2 * width / (2 if causal else 1)
    flops *= 3.5 if gradients else 1
    kind = "with gradients" if gradients else "forward"
    mask = "causal" if causal else "full"
    for name, ms in medians(works).items():
        text = f"width {width:3} length {length:5} {mask:6} {kind:14} {name:6}"
        print(f"{text} {ms:8.3f} ms {flops / ms / 1e9:8.1f} TF/s")


class Given(dict):
    """Name to library and way, and the dtype."""

    def __init__(self, dtype: str, peer: bool) -> None:
        super().__init__(taeda=(taeda, "fused"), math=(taeda, "math"))
        self.dtype = dtype
        if peer:
            import torch

            self["torch"] = (torch, "fused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--dtype", default="bfloat16")
    arguments = parser.parse_args()
    given = Given(arguments.dtype, arguments.peer)
    print(taeda.cuda.get_device_name(), arguments.dtype)
    for width in WIDTHS:
        for length in LENGTHS:
            for causal in (False, True):
                for gradients in (False, True):
                    measure(width, length, causal, gradients, given)


if __name__ == "__main__":
    main()
