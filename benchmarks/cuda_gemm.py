"""Matrix products on a GPU: TFLOP/s, and their share of cuBLAS called directly.

Usage: python benchmarks/cuda_gemm.py [--peer] [SIZE...]   (8192; needs a GPU)

`cublas` is cublasGemmEx on the same memory, which chooses by itself; with `--peer`
PyTorch's product stands beside both. Each is the median of 20 runs between events,
after 5 that are left out, in turns (A B A B). TF32 is float32 with
`set_float32_matmul_precision("high")`.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
from collections.abc import Callable
from pathlib import Path

import taeda

RUNS, WARM = 20, 5
# case -> dtype, cudaDataType_t, cublasComputeType_t
CASES = {
    "bfloat16": (taeda.bfloat16, 14, 68),
    "float16": (taeda.float16, 2, 68),
    "tf32": (taeda.float32, 0, 77),
    "float32": (taeda.float32, 0, 68),
    "float64": (taeda.float64, 1, 70),
}


class Cublas:
    """cublasGemmEx of the library that lies beside cuBLASLt."""

    def __init__(self) -> None:
        self.library = self._open()
        self.handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self.handle))

    @staticmethod
    def _open() -> ctypes.CDLL:
        from taeda.cuda._devices import _library_folders

        folders = [Path(folder) for folder in _library_folders()]
        found = [str(file) for f in folders for file in f.glob("libcublas.so.*")]
        for name in (*found, "libcublas.so.13", "libcublas.so.12"):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
        raise SystemExit("no libcublas: install nvidia-cublas or CUDA's toolkit")

    def _call(self, name: str, *arguments) -> None:
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise SystemExit(f"{name}: status {status}")

    def product(self, a, b, out, case: str) -> Callable[[], None]:
        """out = a b, of squares that lie row by row: the sides change places."""
        _, kind, compute = CASES[case]
        wide = ctypes.c_double if case == "float64" else ctypes.c_float
        alpha, beta = wide(1), wide(0)
        n = out.shape[0]
        at = [ctypes.c_void_p(t.data_ptr()) for t in (b, a, out)]
        side = (ctypes.c_int(kind), ctypes.c_int(n))
        stream = ctypes.c_void_p(taeda.cuda.current_stream().cuda_stream)
        self._call("cublasSetStream_v2", self.handle, stream)

        def run() -> None:
            self._call(
                "cublasGemmEx",
                *(self.handle, 0, 0, n, n, n, ctypes.byref(alpha)),
                *(at[0], *side, at[1], *side, ctypes.byref(beta), at[2], *side),
                *(ctypes.c_int(compute), ctypes.c_int(-1)),
            )

        return run


def milliseconds(work: Callable[[], object]) -> float:
    start, end = (taeda.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def medians(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(WARM + RUNS):
        for name, work in works.items():
            spent = milliseconds(work)
            if turn >= WARM:
                taken[name].append(spent)
    return {name: statistics.median(times) for name, times in taken.items()}


def peers(case: str, size: int) -> Callable[[], object]:
    import torch

    torch.set_float32_matmul_precision("high" if case == "tf32" else "highest")
    dtype = getattr(torch, str(CASES[case][0]).rpartition(".")[2])
    x, y = (torch.randn(size, size, dtype=dtype, device="cuda") for _ in range(2))
    return lambda: torch.mm(x, y)


def measure(case: str, size: int, cublas: Cublas, peer: bool) -> None:
    dtype = CASES[case][0]
    taeda.set_float32_matmul_precision("high" if case == "tf32" else "highest")
    a, b = (taeda.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    out = taeda.empty(size, size, device="cuda", dtype=dtype)
    works: dict[str, Callable[[], object]] = {
        "taeda": lambda: taeda.mm(a, b),
        "cublas": cublas.product(a, b, out, case),
    }
    if peer:
        works["torch"] = peers(case, size)
    spent = medians(works)
    work = 2 * size**3 / 1e9
    shown = "  ".join(f"{name} {work / ms:8.1f}" for name, ms in spent.items())
    share = spent["cublas"] / spent["taeda"]
    print(f"{case:9s} {size:6d}  TFLOP/s: {shown}  share of cublas {share:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[8192])
    parser.add_argument("--peer", action="store_true", help="PyTorch beside it")
    args = parser.parse_args()
    if not taeda.cuda.is_available():
        raise SystemExit("needs a GPU")
    cublas = Cublas()
    for size in args.sizes:
        for case in CASES:
            measure(case, size, cublas, args.peer)


if __name__ == "__main__":
    main()
