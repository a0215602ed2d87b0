"""What functions that describe operators in ONNX are written with."""

from __future__ import annotations

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str):
    """Says what a symbolic function takes, an entry for each argument behind the graph.

    Args:
        arg_descriptors: "v" a value of the graph, "i", "f", "s", "b" a number, a text
            or a bool, "is" and "fs" lists of them, "t" a tensor, "none" nothing.

    Returns:
        A decorator that keeps them with the function (`_arg_descriptors`).
    """

    def decorate(function):
        function._arg_descriptors = arg_descriptors
        return function

    return decorate
