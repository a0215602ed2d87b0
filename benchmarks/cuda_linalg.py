"""Linear algebra and sparse products on a GPU: milliseconds of a call.

Usage: python benchmarks/cuda_linalg.py [--peer] [--only WORD] [--library NAME]

Single large matrices (cuSOLVER), batches of small ones (our kernels) and CSR matrices
times dense ones; needs a GPU. With `--peer` PyTorch's call stands beside each. Each is
the median of 20 runs between events, after 5 that are left out, in turns (A B A B).
`--library cusolver` has the library factor all matrices, so that a run with it and one
without tell where our kernels should end.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import taeda

RUNS, WARM = 20, 5
# Matrices of a case: how many, rows.
SIZES = (
    (1, 512),
    (1, 2048),
    (1, 4096),
    (8, 512),
    (10_000, 4),
    (10_000, 16),
    (10_000, 32),
    (1_000, 64),
    (1_000, 96),
)
DTYPES = ("float32", "float64", "complex64")
# Rows of a CSR matrix, entries of a row, columns of the dense one.
SPARSE = ((100_000, 16, 64), (100_000, 16, 1), (10_000, 256, 128))


def milliseconds(module, work: Callable[[], object]) -> float:
    start, end = (module.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def medians(works: dict[str, tuple]) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(WARM + RUNS):
        for name, (module, work) in works.items():
            spent = milliseconds(module, work)
            if turn >= WARM:
                taken[name].append(spent)
    return {name: statistics.median(times) for name, times in taken.items()}


def operators(module, count: int, rows: int, dtype: str) -> dict[str, Callable]:
    """What is measured, on the same numbers in both libraries."""
    linalg = module.linalg
    module.manual_seed(1)
    kind = getattr(module, dtype)
    sizes = (rows, rows) if count == 1 else (count, rows, rows)
    a = module.randn(*sizes, dtype=kind, device="cuda")
    definite = a @ a.mH + rows * module.eye(rows, dtype=kind, device="cuda")
    right = module.randn(*sizes[:-1], 8, dtype=kind, device="cuda")
    triangle = definite.tril()
    found = {
        "cholesky_ex": lambda: linalg.cholesky_ex(definite),
        "lu_factor_ex": lambda: linalg.lu_factor_ex(a),
        "solve_ex": lambda: linalg.solve_ex(a, right),
        "inv_ex": lambda: linalg.inv_ex(a),
        "det": lambda: linalg.det(a),
        "solve_triangular": lambda: linalg.solve_triangular(
            triangle, right, upper=False
        ),
        "qr": lambda: linalg.qr(a),
        "lstsq": lambda: linalg.lstsq(a, right, driver="gels"),
    }
    if rows <= 2048:
        found["eigh"] = lambda: linalg.eigh(definite)
        found["svd"] = lambda: linalg.svd(a, full_matrices=False)
        found["svdvals"] = lambda: linalg.svdvals(a)
    if count == 1 and rows <= 2048:
        found["eig"] = lambda: linalg.eig(a)
    return found


def products(module, rows: int, entries: int, columns: int) -> dict[str, Callable]:
    module.manual_seed(1)
    offsets = module.arange(0, rows * entries + 1, entries, device="cuda")
    places = module.randint(0, rows, (rows, entries), device="cuda").sort(1).values
    values = module.randn(rows * entries, device="cuda")
    matrix = module.sparse_csr_tensor(offsets, places.reshape(-1), values, (rows, rows))
    dense = module.randn(rows, columns, device="cuda")
    found = {"csr @ dense": lambda: matrix @ dense}
    if columns == 1:
        found["csr @ vector"] = lambda: matrix @ dense[:, 0]
    else:
        found["sampled_addmm"] = lambda: module.sparse.sampled_addmm(
            matrix, dense, dense.mT
        )
    return found


def measure(label: str, make: Callable, modules: dict[str, object], only: str) -> None:
    made = {name: make(module) for name, module in modules.items()}
    for operator in made["taeda"]:
        if only not in operator:
            continue
        works = {name: (modules[name], made[name][operator]) for name in modules}
        spent = medians(works)
        shown = "  ".join(f"{name} {ms:9.3f}" for name, ms in spent.items())
        share = f"  taeda/torch {spent['taeda'] / spent['torch']:.2f}"
        print(f"{label} {operator:17s} ms: {shown}{share if 'torch' in spent else ''}")


def arguments() -> argparse.Namespace:
    texts = {"only": "operators whose name has this", "library": "default or cusolver"}
    parser = argparse.ArgumentParser(description=__doc__)
    for name, help_ in texts.items():
        parser.add_argument(f"--{name}", default="", help=help_)
    parser.add_argument("--peer", action="store_true", help="PyTorch beside it")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if not taeda.cuda.is_available():
        raise SystemExit("needs a GPU")
    taeda.backends.cuda.preferred_linalg_library(args.library or "default")
    modules: dict[str, object] = {"taeda": taeda}
    if args.peer:
        import torch

        modules["torch"] = torch
    for count, rows in SIZES:
        for dtype in DTYPES:
            label = f"{count:6d} x {rows:4d} {dtype:9s}"
            measure(
                label,
                lambda m, c=count, r=rows, d=dtype: operators(m, c, r, d),
                modules,
                args.only,
            )
    for rows, entries, columns in SPARSE:
        label = f"{rows:6d} rows of {entries:3d} times {columns:3d}"
        measure(
            label,
            lambda m, r=rows, e=entries, c=columns: products(m, r, e, c),
            modules,
            args.only,
        )


if __name__ == "__main__":
    main()
