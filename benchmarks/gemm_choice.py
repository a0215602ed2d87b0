"""Ways to compute a matrix product, beside each other and beside torch.

Shows whether the thresholds of aten/native/blas/gemm_choice.cpp are right on a
machine. `python benchmarks/gemm_choice.py LIBRARY` takes the shared library made
from gemm_choice.cpp and libtaeda; every figure is the fastest of interleaved rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time

ROUTES = {"f": ["small", "dnn", "openblas", ""], "d": ["small", "openblas", ""]}
SQUARES = [4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024]
# (batch, m, n, k, transposed b): a linear layer, a GPT's projections, attention.
SHAPES = [
    (1, 64, 256, 784, 1),
    (1, 1, 1024, 1024, 1),
    (1, 1024, 576, 192, 1),
    (1, 1024, 768, 192, 1),
    (1, 1024, 192, 768, 1),
    (1, 1024, 65, 192, 1),
    (48, 128, 128, 32, 1),
    (48, 128, 32, 128, 0),
    (1000, 8, 8, 8, 0),
    (64, 64, 64, 64, 0),
]


def load(path: str) -> ctypes.CDLL:
    """The timing library, with the types of its functions set."""
    library = ctypes.CDLL(path)
    size = ctypes.c_int64
    library.bench_gemm.restype = ctypes.c_double
    library.bench_gemm.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char,
        ctypes.c_int,
        ctypes.c_int,
        size,
        size,
        size,
        size,
        ctypes.c_int,
        ctypes.c_int,
    ]
    library.bench_conv.restype = ctypes.c_double
    library.bench_conv.argtypes = [ctypes.c_int] * 3 + [size] * 8 + [ctypes.c_int] * 3
    return library


def fastest(function: object, repeats: int) -> float:
    """Seconds of one call, from a run of `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def torch_product(dtype: str, batch: int, m: int, n: int, k: int, tb: int) -> object:
    """A call of torch's product with its output ready, as ours has."""
    import torch

    kind = {
        "f": torch.float32,
        "d": torch.float64,
        "c": torch.complex64,
        "b": torch.bfloat16,
        "h": torch.float16,
        "q": torch.int64,
    }[dtype]
    lead = () if batch == 1 else (batch,)
    a = torch.ones(*lead, m, k, dtype=kind)
    b = torch.ones(*lead, *((n, k) if tb else (k, n)), dtype=kind)
    b = b.transpose(-1, -2) if tb else b
    out = torch.empty(*lead, m, n, dtype=kind)
    function = torch.mm if batch == 1 else torch.bmm
    return lambda: function(a, b, out=out)


def measure(
    library: ctypes.CDLL, dtype: str, shape: tuple[int, ...], rounds: int
) -> dict[str, float]:
    """Seconds of each way for one shape."""
    batch, m, n, k, tb = shape
    repeats = max(1, min(2000, int(2e7 / (batch * m * n * k + 10000))))
    reference = torch_product(dtype, batch, m, n, k, tb)
    best: dict[str, float] = {}
    for _ in range(rounds):
        for route in ROUTES.get(dtype, [""]):
            if route == "small" and m * n * k > 128**3:
                continue
            seconds = library.bench_gemm(
                route.encode(), dtype.encode(), 0, tb, batch, m, n, k, 2, repeats
            )
            name = route or "chosen"
            best[name] = min(best.get(name, math.inf), seconds)
        best["torch"] = min(best.get("torch", math.inf), fastest(reference, repeats))
    return best


def main() -> None:
    """Prints a line of microseconds for every shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="f", help="f d c b h q")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    library = load(options.library)
    import torch

    library.bench_set_threads(options.threads)
    torch.set_num_threads(options.threads)
    shapes = [(1, n, n, n, tb) for n in SQUARES for tb in (0, 1)] + SHAPES
    ratios = []
    print(f"dtype {options.dtype}, threads {options.threads}; microseconds")
    for shape in shapes:
        best = measure(library, options.dtype, shape, options.rounds)
        ratios.append(best["chosen"] / best["torch"])
        ways = "  ".join(f"{name} {1e6 * t:9.2f}" for name, t in best.items())
        print(f"{shape!s:28} {ways}  chosen/torch {ratios[-1]:.2f}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean chosen/torch {mean:.2f}")


if __name__ == "__main__":
    main()
