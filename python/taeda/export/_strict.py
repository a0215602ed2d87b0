"""What is refused where a program is to be taken from its bytecode."""

from __future__ import annotations

__all__ = ["check"]


class _Captured(Exception):
    """Ends the call once its graph is known: nothing is computed."""


def _stop(graph, inputs):
    raise _Captured


def check(mod, args: tuple, kwargs: dict) -> None:
    """Captures the module's forward as one graph, and throws the graph away.

    Raises:
        Unsupported: something that breaks a graph, with its line.
    """
    from taeda._dynamo.exc import BackendCompilerFailed
    from taeda.compiler._frames import capture

    def call(*args, **kwargs):
        return mod(*args, **kwargs)

    try:
        capture(call, fullgraph=True, backend=_stop)(*args, **kwargs)
    except _Captured:
        return
    except BackendCompilerFailed as error:
        if not isinstance(error.inner_exception, _Captured):
            raise
