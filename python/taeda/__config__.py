"""How the library was built."""

from __future__ import annotations

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A text for bug reports: versions and the CPU level in use."""
    import platform

    import taeda

    lines = [
        f"Taeda built with C++20, version {taeda._C.__version__}",
        f"  - Python {platform.python_version()} on {platform.machine()}",
        f"  - CPU capability: {taeda.backends.cpu.get_cpu_capability()}",
        "  - BLAS: OpenBLAS, oneDNN; CUDA: not in this build",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """The numbers of threads in use."""
    import taeda

    return (
        f"ATen parallel backend: OpenMP\n"
        f"\tat::get_num_threads() : {taeda.get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {taeda.get_num_interop_threads()}\n"
    )
