"""Convolutions on a GPU: TFLOP/s of ResNet-50's, forward and with gradients.

Usage: python benchmarks/cuda_convolutions.py [--peer] [--batch N]   (needs a GPU)

Values lie with their channels innermost, in bfloat16. With `--peer` PyTorch's stand
beside them. Each is the median of 20 runs between events, after 5 that are left out, in
turns (A B A B), with `backends.cudnn.benchmark` off and on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import taeda
from cuda_gemm import medians

# input channels, side, output channels, kernel, stride
CASES = {
    "stem 7x7": (3, 224, 64, 7, 2),
    "64 3x3": (64, 56, 64, 3, 1),
    "256 1x1": (256, 56, 64, 1, 1),
    "128 3x3 by two": (128, 56, 128, 3, 2),
    "256 3x3": (256, 14, 256, 3, 1),
    "512 1x1": (512, 7, 2048, 1, 1),
}


def work_of(library, case: str, batch: int, gradients: bool) -> Callable[[], object]:
    """A call of one library's convolution on values of its own."""
    channels, side, out, kernel, stride = CASES[case]
    last, dtype = library.channels_last, library.bfloat16
    layer = library.nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)
    layer = layer.to("cuda", dtype).to(memory_format=last)
    x = library.randn(batch, channels, side, side, device="cuda").to(dtype)
    x = x.contiguous(memory_format=last).requires_grad_(gradients)
    if not gradients:
        layer.requires_grad_(False)
        return lambda: layer(x)
    grad = library.randn_like(layer(x))

    def step() -> None:
        layer(x).backward(grad)
        x.grad = layer.weight.grad = None

    return step


def measure(case: str, batch: int, gradients: bool, libraries: dict) -> None:
    channels, side, out, kernel, stride = CASES[case]
    works = {
        name: work_of(library, case, batch, gradients)
        for name, library in libraries.items()
    }
    products = channels * kernel**2 * out * (side // stride) ** 2 * batch
    flops = 2 * products * (3 if gradients else 1)
    for name, ms in medians(works).items():
        kind = "with gradients" if gradients else "forward"
        print(f"{case:16} {kind:15} {name:6} {ms:8.3f} ms {flops / ms / 1e9:8.1f} TF/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--batch", type=int, default=64)
    arguments = parser.parse_args()
    libraries = {"taeda": taeda}
    if arguments.peer:
        import torch

        libraries["torch"] = torch
    print("cuDNN", taeda.backends.cudnn.version(), taeda.cuda.get_device_name())
    for tries in (False, True):
        for library in libraries.values():
            library.backends.cudnn.benchmark = tries
        print("benchmark", tries)
        for case in CASES:
            for gradients in (False, True):
                measure(case, arguments.batch, gradients, libraries)


if __name__ == "__main__":
    main()
