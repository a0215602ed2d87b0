"""What the compiler says while it works: `set_logs` and the environment's TAEDA_LOGS.

    graph_breaks   where a graph ends before its function does, why, and the line
    recompiles     what was different where a function is captured again
    graph          the calls of each graph
    graph_code     each graph as Python code
    guards         what has to hold for a graph to be used

`TAEDA_LOGS=graph_breaks,recompiles` in the environment is as
`set_logs(graph_breaks=True, recompiles=True)` at the start; "all" stands for each.
TORCH_LOGS is read too, without complaint about names that nothing stands for here.
Lines go to loggers `taeda.compiler.NAME`, and to stderr where a program has not set up
logging.
"""

from __future__ import annotations

import os
import sys

__all__ = ["ARTIFACTS", "artifact_log", "set_logs", "wanted"]

ARTIFACTS = ("graph", "graph_breaks", "graph_code", "guards", "recompiles")
# Names of PyTorch's for which everything is printed, or for what has no artifact here.
_EVERYTHING = ("all", "dynamo")

# What is printed; None until it is asked for. One assignment replaces it, so that
# threads see one set or the other.
_enabled: frozenset[str] | None = None


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


def wanted(artifact: str) -> bool:
    """Whether something is printed."""
    global _enabled
    if _enabled is None:
        _enabled = _from_environment()
    return artifact in _enabled


def artifact_log(artifact: str, text: str) -> None:
    """Prints, if it is wanted."""
    if not wanted(artifact):
        return
    import logging

    logger = logging.getLogger(f"taeda.compiler.{artifact}")
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        logging.getLogger("taeda.compiler").addHandler(handler)
    logger.info(text)
