"""taeda.compile, until the graph compiler exists: it runs programs eagerly."""

from __future__ import annotations

_told = False


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend="inductor",
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
):
    """The function or module itself; the graph compiler does not exist yet.

    Args:
        model: what to compile; without it, a decorator is returned.
        fullgraph, dynamic, backend, mode, options, disable: accepted and unused.

    Returns:
        `model`, which runs eagerly; one line says so the first time.
    """
    global _told
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at "
            "the same time."
        )
    if model is None:
        return lambda function: compile(
            function, fullgraph=fullgraph, dynamic=dynamic, backend=backend
        )
    if not callable(model):
        raise AssertionError(
            f"compile: expected a callable, got {type(model).__name__}"
        )
    if not _told and not disable:
        _told = True
        import sys

        print(
            "taeda.compile: the graph compiler does not exist yet; running eagerly",
            file=sys.stderr,
        )
    return model
