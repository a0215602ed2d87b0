"""Compiled graphs that check elements of tensors: see `taeda/_checks.py`."""

from __future__ import annotations

from taeda._checks import collected

__all__ = ["CheckedGraph", "compiled"]


def compiled(function, inputs, compile_function):
    """`compile_function(function, inputs)` for a function that makes checks."""

    def run(*given):
        with collected() as pending:
            results = function(*given)
        conditions = [condition for condition, _ in pending]
        errors = tuple(error for _, error in pending)
        return (*results, *conditions, errors)

    return CheckedGraph(compile_function(run, inputs))


class CheckedGraph:
    """A compiled graph whose last outputs are conditions and their errors."""

    # A call that raises may be made again, as one of `_compiler.Compiled`.
    repeatable = True

    def __init__(self, made) -> None:
        self._made, self.prepare = made, made.prepare

    def __call__(self, *given):
        *results, errors = self._made(*given)
        count = len(results) - len(errors)
        for condition, error in zip(results[count:], errors, strict=True):
            if condition:
                raise type(error)(*error.args)
        return tuple(results[:count])
