"""What the compiler says while it works: `set_logs` and the environment's TAEDA_LOGS.

    graph_breaks   where a graph ends before its function does, why, and the line
    recompiles     what was different where a function is captured again
    graph          the calls of each graph
    graph_code     each graph as Python code
    guards         what has to hold for a graph to be used
    compiled_autograd  backward passes that are captured whole: graphs, where they end
    aot_graphs     the operators of each graph, forward and backward, with what is fused
    schedule       the loops of each kernel
    output_code    the C++ text of the kernels
    perf_hints     why a graph is not compiled, or not for all of its sizes

`TAEDA_LOGS=graph_breaks,recompiles` in the environment is as
`set_logs(graph_breaks=True, recompiles=True)` at the start; "all" stands for each.
TORCH_LOGS is read too, without complaint about names that nothing stands for here.
Lines go to loggers `taeda.compiler.NAME`, and to stderr where a program has not set up
logging. `TAEDA_TRACE=page.html`, or `trace_page`, writes all of it to a page.
"""

from __future__ import annotations

import contextlib
import os
import sys

__all__ = ["ARTIFACTS", "artifact_log", "set_logs", "trace_page", "wanted"]

ARTIFACTS = (
    "aot_graphs",
    "compiled_autograd",
    "graph",
    "graph_breaks",
    "graph_code",
    "guards",
    "output_code",
    "perf_hints",
    "recompiles",
    "schedule",
)
# Names of PyTorch's for which everything is printed, or for what has no artifact here.
_EVERYTHING = ("all", "dynamo")

# What is printed; None until it is asked for. One assignment replaces it, so that
# threads see one set or the other.
_enabled: frozenset[str] | None = None
# The pages that everything is written to; replaced as a whole, too.
_pages: tuple = ()


def set_logs(**artifacts) -> None:
    """Chooses what is printed; what is not named is not.

    Args:
        artifacts: name=True of what is; `all=True`, or a level of `logging` below
            WARNING for `all` or `dynamo`, is everything.

    Raises:
        ValueError: an unknown name.

    Example:
        >>> taeda._logging.set_logs(graph_breaks=True)
        >>> taeda._logging.set_logs()
    """
    chosen: set[str] = set()
    for name, value in artifacts.items():
        chosen |= _chosen(name, value)
    _enable(chosen)


def _chosen(name: str, value) -> set[str]:
    if name in _EVERYTHING:
        from logging import WARNING

        loud = value is True or (value and value < WARNING)
        return set(ARTIFACTS) if loud else set()
    if name not in ARTIFACTS:
        raise ValueError(
            f"set_logs: unknown name {name!r}, known are "
            f"{', '.join((*ARTIFACTS, *_EVERYTHING))}"
        )
    return {name} if value else set()


def _enable(chosen: set[str]) -> None:
    global _enabled
    _start()
    _enabled = frozenset(chosen)
    capture = sys.modules.get("taeda._capture")
    if capture is not None:
        hand_over(capture)


def hand_over(capture) -> None:
    """Tells `_capture` whether graphs and guards have to be spelled out."""
    spelled = wanted("graph") or wanted("graph_code") or wanted("guards")
    capture.configure("spell_graphs", int(spelled))


def _from_environment() -> frozenset[str]:
    chosen: set[str] = set()
    for variable in ("TAEDA_LOGS", "TORCH_LOGS"):
        for item in filter(None, os.environ.get(variable, "").split(",")):
            name = item.strip().lstrip("+")
            if variable == "TAEDA_LOGS" or name in (*ARTIFACTS, *_EVERYTHING):
                chosen |= _chosen(name, not item.startswith("-"))
    return frozenset(chosen)


@contextlib.contextmanager
def trace_page(path):
    """Everything that the compiler says inside, as one HTML page.

    Args:
        path: of the page, which is written while the program runs.

    Example:
        >>> with taeda._logging.trace_page("compile.html"):
        ...     y = taeda.compile(lambda x: x + 1)(taeda.ones(1))
    """
    global _pages
    with _open_page(path) as page:
        _show_pages((*_pages, page))
        try:
            yield
        finally:
            _show_pages(tuple(each for each in _pages if each is not page))


def _open_page(path):
    from ._page import Page

    return Page(path)


def _show_pages(pages: tuple) -> None:
    global _pages
    _pages = pages
    capture = sys.modules.get("taeda._capture")
    if capture is not None:
        hand_over(capture)


def _start() -> None:
    """Reads the environment, once."""
    global _enabled, _pages
    if _enabled is not None:
        return
    _enabled = _from_environment()
    path = os.environ.get("TAEDA_TRACE")
    if path:
        _pages = (*_pages, _open_page(path))


def wanted(artifact: str) -> bool:
    """Whether somebody reads it."""
    _start()
    return bool(_pages) or artifact in _enabled


def artifact_log(artifact: str, text: str) -> None:
    """Prints, if it is wanted."""
    if not wanted(artifact):
        return
    for page in _pages:
        page.add(artifact, text)
    if artifact not in _enabled:
        return
    import logging

    logger = logging.getLogger(f"taeda.compiler.{artifact}")
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        logging.getLogger("taeda.compiler").addHandler(handler)
    logger.info(text)
