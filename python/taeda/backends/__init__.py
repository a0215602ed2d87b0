"""What this build computes with, and switches of libraries."""

from __future__ import annotations

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
    "opt_einsum",
    "quantized",
]


class _Flags:
    """A scope in which switches have other values."""

    def __init__(self, space: dict, values: dict) -> None:
        self.space, self.values = space, values

    def __enter__(self) -> None:
        self.before = {name: self.space[name] for name in self.values}
        self.space.update(self.values)

    def __exit__(self, *exception) -> None:
        self.space.update(self.before)


def __getattr__(name: str):
    if name in __all__:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
