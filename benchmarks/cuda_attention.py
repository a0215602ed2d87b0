"""Attention on a GPU: TFLOP/s by width of heads and length, forward and with gradients.

Usage: python benchmarks/cuda_attention.py [--peer] [--dtype NAME] [--cases NAME...]

It needs a GPU; `--tiny` tries all on an emulated one, where times mean nothing.

16,384 queries in all, 2,048 columns over all heads, as in "FlashAttention-2" (T. Dao,
2023). Work is counted as there: 4 L S D forward for each head, 2.5 times as much
backward, half of both with a causal mask. `math` is products and softmax; with
`--peer` PyTorch's stands beside them, by the kernel that it chooses. Each is the median
of 20 runs between events, after 5 that are left out, in turns (A B A B).

`varlen` is `varlen_attn` of sequences of 1 to 2,048 places, drawn evenly, causal,
beside one call for each sequence. `decoding` is one query for each of 8 sequences (32
heads of 128 columns, 8 of keys) beside caches of 2,048 to 65,536 keys: GB/s of keys and
values.
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


def lengths_of(total: int, longest: int) -> list[int]:
    """Drawn evenly from 1 to `longest`, the same for all libraries."""
    import random

    draw, found = random.Random(3), []
    while sum(found) < total:
        found.append(min(draw.randint(1, longest), total - sum(found)))
    return found


def varlen_work(library, way: str, given, lengths: list[int], gradients: bool):
    """Packed sequences by one call, or one by one."""
    from importlib import import_module

    kind, heads, width = getattr(library, given.dtype), COLUMNS // 128, 128
    sizes = (3, sum(lengths), heads, width)
    made = library.randn(*sizes, device="cuda").to(kind)
    inputs = [t.requires_grad_(gradients) for t in made.unbind()]
    ends = library.tensor([0, *lengths], dtype=library.int32, device="cuda").cumsum(0)
    ends = ends.to(library.int32)
    varlen = import_module(f"{library.__name__}.nn.attention.varlen").varlen_attn
    attend = library.nn.functional.scaled_dot_product_attention

    def forward():
        if way == "fused":
            longest = max(lengths)
            window = {"window_size": (-1, 0)}
            return varlen(*inputs, ends, ends, longest, longest, **window)
        parts = zip(*(t.split(lengths) for t in inputs), strict=True)
        found = []
        for part in parts:
            one = attend(*(t.transpose(0, 1)[None] for t in part), is_causal=True)
            found.append(one[0].transpose(0, 1))
        return library.cat(found)

    if not gradients:
        return forward
    grad = library.randn_like(forward())

    def step() -> None:
        forward().backward(grad)
        for t in inputs:
            t.grad = None

    return step


def measure_varlen(given) -> None:
    lengths = lengths_of(given.queries, min(2048, given.queries))
    heads = COLUMNS // 128
    for gradients in (False, True):
        works = {
            f"{name} {way}": varlen_work(library, way, given, lengths, gradients)
            for name, (library, kind) in given.items()
            if kind == "fused"
            for way in ("fused", "one by one")
        }
        flops = sum(2 * heads * n**2 * 128 for n in lengths) * (3.5 if gradients else 1)
        kind = "with gradients" if gradients else "forward"
        for name, ms in medians(works).items():
            text = f"varlen {len(lengths)} sequences {kind:14} {name:17}"
            print(f"{text} {ms:8.3f} ms {flops / ms / 1e9:8.1f} TF/s")


def decoding_work(library, given, keys: int):
    attend = library.nn.functional.scaled_dot_product_attention
    kind = getattr(library, given.dtype)
    sizes = (given.batch, 8, keys, 128)
    q = library.randn(given.batch, 32, 1, 128, device="cuda").to(kind)
    k, v = (library.randn(*sizes, device="cuda").to(kind) for _ in range(2))
    return lambda: attend(q, k, v, enable_gqa=True)


def measure_decoding(given) -> None:
    for keys in given.caches:
        works = {
            name: decoding_work(library, given, keys)
            for name, (library, way) in given.items()
            if way == "fused"
        }
        size = getattr(taeda, given.dtype).itemsize
        read = 2 * given.batch * 8 * keys * 128 * size
        for name, ms in medians(works).items():
            print(
                f"decoding {keys:6} keys {name:6} {ms:8.3f} ms "
                f"{read / ms / 1e6:8.1f} GB/s"
            )


def measure(width: int, length: int, causal: bool, gradients: bool, given) -> None:
    heads = COLUMNS // width
    sizes = (given.queries // length, heads, length, width)
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
        self.queries, self.lengths, self.batch = QUERIES, LENGTHS, 8
        self.caches = (2048, 8192, 65536)
        if peer:
            import torch

            self["torch"] = (torch, "fused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--cases", nargs="*", default=["dense", "varlen", "decoding"])
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    given = Given(arguments.dtype, arguments.peer)
    print(taeda.cuda.get_device_name(), arguments.dtype)
    if arguments.tiny:
        given.queries, given.lengths, given.batch = 64, (32,), 1
        given.caches = (70,)
    for width in WIDTHS if "dense" in arguments.cases else ():
        for length in given.lengths:
            for causal in (False, True):
                for gradients in (False, True):
                    measure(width, length, causal, gradients, given)
    if "varlen" in arguments.cases:
        measure_varlen(given)
    if "decoding" in arguments.cases:
        measure_decoding(given)


if __name__ == "__main__":
    main()
