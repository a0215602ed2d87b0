"""Controls of `compile`, which runs programs eagerly for now."""

from __future__ import annotations

from taeda._compile import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def is_compiling() -> bool:
    """Whether a graph is being captured: never, while programs run eagerly."""
    return False


def is_dynamo_compiling() -> bool:
    """As `is_compiling`."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported."""
    return False


def reset() -> None:
    """Forgets compiled code, of which there is none."""


def cudagraph_mark_step_begin() -> None:
    """Marks where an iteration starts."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """Names of the compiler's backends: none yet."""
    return []


def disable(fn=None, recursive: bool = True, *, reason: str | None = None):
    """Keeps a function out of compiled graphs; with no function, a decorator."""
    if fn is None:
        return lambda function: disable(function, recursive)
    return fn


def allow_in_graph(fn):
    """Takes a function (or a list of them) into graphs as it is."""
    return fn


def assume_constant_result(fn):
    """Takes a function's result as a constant of the graph."""
    return fn


class set_stance:
    """How `compile` behaves from here on; also a context manager and a decorator.

    Args:
        stance: "default", "force_eager", "eager_on_recompile", "fail_on_recompile" or
            "eager_then_compile"; all of them run eagerly for now.

    Raises:
        RuntimeError: another stance.
    """

    _STANCES = (
        "default",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
        "eager_then_compile",
        "aot_eager_then_compile",
    )

    def __init__(self, stance: str = "default", **settings) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"set_stance: invalid stance {stance!r}")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error) -> None:
        return None

    def __call__(self, fn):
        return fn
