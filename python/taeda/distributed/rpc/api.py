"""Calls of functions at other workers."""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

import taeda

from . import _together
from ._caller import WorkerInfo
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT

__all__ = [
    "get_rpc_timeout",
    "get_worker_info",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

# The agent of this process; set by `init_rpc` and cleared by `shutdown`.
_current = None
_lock = threading.Lock()


def _agent():
    """The agent of this process.

    Raises:
        RuntimeError: there is none.
    """
    agent = _current
    if agent is None:
        raise RuntimeError(
            "RPC has not been initialized. Call "
            f"{taeda.__name__}.distributed.rpc.init_rpc first."
        )
    return agent


_get_current_rpc_agent = _agent


def _is_current_rpc_agent_set() -> bool:
    return _current is not None


def _set_agent(agent) -> None:
    global _current
    with _lock:
        if agent is not None and _current is not None:
            raise RuntimeError("RPC is already initialized")
        _current = agent


def _require_initialized(func):
    """A function that raises where there is no agent."""

    @functools.wraps(func)
    def checked(*args, **kwargs):
        _agent()
        return func(*args, **kwargs)

    return checked


def __getattr__(name: str):
    # `RRef` needs this module.
    if name == "RRef":
        from ._rref import RRef

        return RRef
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """The worker of a name.

    Args:
        worker_name: None for this worker.

    Raises:
        RuntimeError: nobody has the name.
    """
    agent = _agent()
    return agent.worker if worker_name is None else agent.directory.find(worker_name)


def _to_worker_info(to) -> WorkerInfo:
    if isinstance(to, WorkerInfo):
        return to
    if isinstance(to, (str, int)):
        return _agent().directory.find(to)
    raise ValueError(f"Cannot get WorkerInfo from name {to}")


def get_rpc_timeout() -> float:
    """Seconds that a call may take which says none."""
    return _agent().timeout


def _set_rpc_timeout(timeout: float) -> None:
    """Sets the limit of calls that say none, from now on."""
    _agent().timeout = float(timeout)


def _get_debug_info() -> dict[str, str]:
    """What the agent, its references and its contexts of autograd are busy with."""
    from .. import autograd

    agent = _agent()
    told = {**agent.references.debug_info(), **agent.get_debug_info()}
    return {**told, **autograd._get_debug_info()}


def _rref_context_get_debug_info() -> dict[str, str]:
    return _agent().references.debug_info()


def _check(func) -> None:
    if not callable(func):
        raise TypeError(f"function should be callable, got {type(func).__name__}.")


def rpc_sync(
    to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT
) -> Any:
    """Calls a function at a worker and returns its result.

    Args:
        to: a worker's name, number or `WorkerInfo`.
        func: found at the worker by its module and name.
        args: its arguments; tensors, references and what pickles.
        kwargs: its named arguments.
        timeout: seconds; negative for the default, 0 for no limit.

    Raises:
        RuntimeError: the worker did not answer in time, or is lost; it is named.
        Exception: what the function raised, of the same class, with its traceback as
            text.

    Example::

        rpc.rpc_sync("worker1", taeda.add, args=(taeda.ones(2), 3))  # tensor([4., 4.])
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def rpc_async(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    """Calls a function at a worker and returns a future of its result.

    Args:
        to: a worker's name, number or `WorkerInfo`.
        func: found at the worker by its module and name.
        args: its arguments; tensors, references and what pickles.
        kwargs: its named arguments.
        timeout: seconds; negative for the default, 0 for no limit.

    Returns:
        A `taeda.futures.Future`, whose `wait` raises what `rpc_sync` would.
    """
    _check(func)
    agent = _agent()
    return agent.call(_to_worker_info(to), func, args or (), kwargs, timeout)


def remote(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    """Calls a function at a worker, which keeps the result.

    Args:
        to: a worker's name, number or `WorkerInfo`.
        func: found at the worker by its module and name; a class makes an instance.
        args: its arguments.
        kwargs: its named arguments.
        timeout: seconds in which the worker must have taken the call; `to_here` raises
            if it has not.

    Returns:
        An `RRef` to the result, at once.

    Example::

        rref = rpc.remote("worker1", taeda.add, args=(taeda.ones(2), 3))
        rref.to_here()  # tensor([4., 4.])
    """
    from ._rref import created_by_call

    _check(func)
    agent = _agent()
    return created_by_call(
        agent, _to_worker_info(to), func, args or (), kwargs, timeout
    )


def _all_gather(obj, worker_names=None, timeout: float = UNSET_RPC_TIMEOUT) -> dict:
    """Every worker's object: name -> object, at each of the workers.

    Args:
        obj: of this worker.
        worker_names: of the workers that take part; all by default.
        timeout: seconds; negative for the default, 0 for no limit.

    Raises:
        RuntimeError: workers that are missing are named.
    """
    agent = _agent()
    names = worker_names or agent.directory.names()
    seconds = agent.timeout if timeout < 0 else timeout
    return _together.all_gather(agent, obj, names, seconds)


def _barrier(worker_names) -> None:
    """Waits until the workers of these names have come here."""
    _all_gather(None, set(worker_names))


def shutdown(graceful: bool = True, timeout=DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Ends the agent.

    Args:
        graceful: waits until no worker has calls under way, then all leave; else this
            worker leaves now, and calls of it fail.
        timeout: seconds for the wait; 0 for no limit.

    Raises:
        RuntimeError: workers that died or did not come in time are named. The agent has
            ended nevertheless.
    """
    from ..autograd import _contexts

    agent = _agent()
    deadline = time.monotonic() + timeout if timeout else float("inf")
    try:
        if graceful:
            _together.leave(agent, deadline)
    finally:
        agent.close()
        _contexts.end()
        _set_agent(None)
