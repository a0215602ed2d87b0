"""Convolutions of usual networks, forward and backward, beside torch's.

`python benchmarks/dnn_layers.py LIBRARY`: the library is gemm_choice's. Every figure
is the fastest of interleaved rounds; ratios are ours / torch's, below 1 is quicker.
"""

from __future__ import annotations

import argparse
import math

from gemm_choice import fastest, load

# batch, in, out, groups, size, kernel, stride, padding
LAYERS = {
    "digits 1": (64, 1, 32, 1, 8, 3, 1, 1),
    "digits 2": (64, 32, 64, 1, 8, 3, 1, 1),
    "cifar 1": (32, 3, 32, 1, 32, 3, 1, 1),
    "cifar 2": (32, 32, 64, 1, 16, 3, 1, 1),
    "resnet stem": (4, 3, 64, 1, 224, 7, 2, 3),
    "resnet 56": (4, 64, 64, 1, 56, 3, 1, 1),
    "resnet 28 down": (4, 128, 256, 1, 28, 3, 2, 1),
    "resnet 14": (4, 256, 256, 1, 14, 3, 1, 1),
    "resnet 1x1": (4, 256, 64, 1, 56, 1, 1, 0),
    "resnet 7": (4, 512, 512, 1, 7, 3, 1, 1),
    "depthwise": (4, 128, 128, 128, 28, 3, 1, 1),
    "grouped": (4, 128, 128, 4, 28, 3, 1, 1),
}
PASSES = ("forward", "input", "weight")


def torch_passes(layer: tuple[int, ...], dtype: str, last: bool) -> list[object]:
    """Torch's three passes on one layer."""
    import torch

    batch, c_in, c_out, groups, size, kernel, stride, pad = layer
    kind = torch.bfloat16 if dtype == "b" else torch.float32
    memory = torch.channels_last if last else torch.contiguous_format
    x = torch.rand(batch, c_in, size, size).to(kind, memory_format=memory)
    w = torch.rand(c_out, c_in // groups, kernel, kernel)
    w = w.to(kind, memory_format=memory)
    b = torch.rand(c_out, dtype=kind)
    y = torch.conv2d(x, w, b, stride, pad, 1, groups)
    grad = torch.rand_like(y)

    def forward() -> None:
        torch.conv2d(x, w, b, stride, pad, 1, groups)

    def backward(mask: list[bool]) -> object:
        arguments = ([c_out], [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups)
        call = torch.ops.aten.convolution_backward
        return lambda: call(grad, x, w, *arguments, mask)

    return [forward, backward([True, False, False]), backward([False, True, True])]


def main() -> None:
    """Prints a line for every layer and pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="f", choices=["f", "b"])
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep reordered weights")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    library = load(options.library)
    import torch

    library.bench_set_threads(options.threads)
    torch.set_num_threads(options.threads)
    print(f"{options}; microseconds, ours / torch's")
    ratios = []
    keep = 0
    for name, layer in LAYERS.items():
        line = f"{name:16}"
        keep += options.keep
        passes = torch_passes(layer, options.dtype, options.channels_last)
        for index, reference in enumerate(passes):
            ours = theirs = math.inf
            reference()
            repeats = max(1, min(100, int(0.01 / fastest(reference, 1))))
            for _ in range(options.rounds):
                last = int(options.channels_last)
                bf16 = int(options.dtype == "b")
                seconds = library.bench_conv(
                    index, bf16, last, *layer, keep * options.keep, 2, repeats
                )
                ours = min(ours, seconds)
                theirs = min(theirs, fastest(reference, repeats))
            ratios.append(ours / theirs)
            line += f"  {PASSES[index]} {1e6 * ours:8.0f} / {1e6 * theirs:8.0f}"
            line += f" = {ours / theirs:4.2f}"
        print(line, flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}")


if __name__ == "__main__":
    main()
