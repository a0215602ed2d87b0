"""Time of a convolution's passes with innermost channels over that with rows.

    PYTHONPATH=python .venv/bin/python benchmarks/conv_layouts.py [--dtype bfloat16]

Each line: the forward pass, the gradient of the image and that of the weight, as
microseconds with rows and the ratio. One thread, CPU time, medians of interleaved
rounds.
Both sides compute on tensors that lie as they want them.
"""

import argparse
import statistics
import time

import taeda

# name: batch, channels in, height and width, channels out, kernel, stride, padding,
# groups, dilation
LAYERS = {
    "16 channels": (32, 16, 32, 16, 3, 1, 1, 1, 1),
    "24 to 40": (8, 24, 28, 40, 3, 1, 1, 1, 1),
    "64 channels": (8, 64, 28, 64, 3, 1, 1, 1, 1),
    "128, stride 2": (8, 128, 28, 128, 3, 2, 1, 1, 1),
    "256 to 512, 1 x 1": (8, 256, 14, 512, 1, 1, 0, 1, 1),
    "512 of 4 x 4": (1, 512, 4, 512, 3, 1, 1, 1, 1),
    "dilated": (4, 64, 28, 64, 3, 1, 2, 1, 2),
    "8 groups of 16": (8, 128, 28, 128, 3, 1, 1, 8, 1),
    "depthwise": (8, 128, 28, 128, 3, 1, 1, 128, 1),
}
ROUNDS = 7
SECONDS = 0.02


def seconds(f, calls):
    start = time.process_time()
    for _ in range(calls):
        f()
    return (time.process_time() - start) / calls


def passes(layer, dtype, layout):
    batch, cin, side, cout, kernel, stride, padding, groups, dilation = layer
    x = taeda.randn(batch, cin, side, side, dtype=dtype)
    x = x.contiguous(memory_format=layout)
    w = taeda.randn(cout, cin // groups, kernel, kernel, dtype=dtype)
    geometry = [stride] * 2, [padding] * 2, [dilation] * 2, False, [0, 0], groups
    aten = taeda.ops.aten
    g = taeda.ones_like(aten.convolution(x, w, None, *geometry))

    def backward(*mask):
        return aten.convolution_backward(g, x, w, None, *geometry, [*mask, False])

    return [
        lambda: aten.convolution(x, w, None, *geometry),
        lambda: backward(True, False),
        lambda: backward(False, True),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    taeda.set_num_threads(1)
    dtype = getattr(taeda, args.dtype)
    for name, layer in LAYERS.items():
        shown = []
        formats = taeda.contiguous_format, taeda.channels_last
        for rows, last in zip(
            *(passes(layer, dtype, layout) for layout in formats), strict=True
        ):
            calls = max(1, round(SECONDS / max(seconds(rows, 2), 1e-7)))
            seconds(last, 2)
            both = rows, last
            spent = [[seconds(f, calls) for f in both] for _ in range(ROUNDS)]
            base = statistics.median(a for a, _ in spent)
            ratio = statistics.median(b / a for a, b in spent)
            shown.append(f"{base * 1e6:8.0f} us {ratio:.2f}")
        print(f"{name:20s}", *shown, flush=True)


if __name__ == "__main__":
    main()
