"""Runs a program on both libraries and compares what it tells."""

from __future__ import annotations

import importlib
import re

LIBRARIES = ("taeda", "torch")


class Library:
    """One of the two: its names, and modules of it by their path."""

    def __init__(self, name: str) -> None:
        self.root = importlib.import_module(name)
        self.fx = importlib.import_module(f"{name}.fx")

    def __getattr__(self, name: str):
        return getattr(self.root, name)

    def at(self, path: str):
        """A submodule: `at("fx.passes.shape_prop")`."""
        return importlib.import_module(f"{self.root.__name__}.{path}")

    def values(self, *sizes):
        """Numbers that are the same in both libraries."""
        count = 1
        for size in sizes:
            count *= size
        numbers = [(i * 7 % 11 - 5) / 4 for i in range(count)]
        return self.root.tensor(numbers).reshape(sizes)

    def filled(self, module):
        """The module with parameters and buffers that are the same in both."""
        with self.root.no_grad():
            for value in (*module.parameters(), *module.buffers()):
                if value.is_floating_point():
                    value.copy_(self.values(*value.shape).abs() + 0.5)
        return module


def told(value):
    """A value in a form that does not depend on the library."""
    if hasattr(value, "detach") and hasattr(value, "tolist"):
        flat = value.detach().double().reshape(-1).tolist()
        return [str(value.dtype).split(".")[-1], list(value.shape), rounded(flat)]
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    if isinstance(value, dict):
        return {told(k): told(v) for k, v in value.items()}
    if isinstance(value, (int, float, bool, type(None))):
        return value
    return re.sub(r"0x[0-9a-f]+", "0x", str(value).replace("taeda", "torch"))


def rounded(numbers):
    return [float(f"{n:.5g}") for n in numbers]


def attempt(function, *args, **kwargs):
    """The result, or the class of the error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


def graph_told(gm):
    """Everything that can be seen of a GraphModule."""
    return [str(gm.graph), gm.code, type(gm).__name__, gm.training]


def check(program) -> None:
    """Asserts that a program tells the same on both libraries."""
    ours, theirs = (told(program(Library(name))) for name in LIBRARIES)
    assert ours == theirs
