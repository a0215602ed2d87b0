"""The kinds of agents; programs may add their own."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from . import constants

__all__ = [
    "BackendType",
    "backend_registered",
    "construct_rpc_backend_options",
    "init_backend",
    "register_backend",
]


class BackendValue(NamedTuple):
    """How a kind of agent is made: its options, and the agent itself."""

    construct_rpc_backend_options_handler: Any
    init_backend_handler: Any


def _short(self) -> str:
    return f"BackendType.{self.name}"


def _kinds(values: dict[str, BackendValue]):
    kinds = enum.Enum("BackendType", values, module=__name__)
    kinds.__repr__ = _short
    kinds.__doc__ = "The kinds of agents that `init_rpc` can start."
    return kinds


def backend_registered(backend_name: str) -> bool:
    """Whether there is a kind of agent of this name."""
    return backend_name in BackendType.__members__


def register_backend(
    backend_name: str,
    construct_rpc_backend_options_handler,
    init_backend_handler,
):
    """Adds a kind of agent.

    Args:
        backend_name: of the kind.
        construct_rpc_backend_options_handler: called with `rpc_timeout`, `init_method`
            and what else is given; returns the options.
        init_backend_handler: called with `store`, `name`, `rank`, `world_size` and
            `rpc_backend_options`; returns the agent.

    Returns:
        Its member of `BackendType`.

    Raises:
        RuntimeError: there is one of this name.
    """
    global BackendType
    if backend_registered(backend_name):
        raise RuntimeError(f"RPC backend {backend_name}: already registered")
    values = {kind.name: kind.value for kind in BackendType}
    values[backend_name] = BackendValue(
        construct_rpc_backend_options_handler, init_backend_handler
    )
    BackendType = _kinds(values)
    return BackendType[backend_name]


def construct_rpc_backend_options(
    backend,
    rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC,
    init_method=constants.DEFAULT_INIT_METHOD,
    **kwargs,
):
    """The options of a kind of agent."""
    return backend.value.construct_rpc_backend_options_handler(
        rpc_timeout, init_method, **kwargs
    )


def init_backend(backend, *args, **kwargs):
    """Starts an agent of a kind."""
    return backend.value.init_backend_handler(*args, **kwargs)


def _tcp_options(rpc_timeout, init_method, **kwargs):
    from .options import TensorPipeRpcBackendOptions

    return TensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout, init_method=init_method, **kwargs
    )


def _tcp_agent(store, name, rank, world_size, rpc_backend_options):
    from ._meeting import join
    from .options import TensorPipeRpcBackendOptions

    if not isinstance(rpc_backend_options, TensorPipeRpcBackendOptions):
        raise TypeError(
            "`rpc_backend_options` must be a `TensorPipeRpcBackendOptions`, got "
            f"{type(rpc_backend_options).__name__}"
        )
    return join(store, name, rank, world_size, rpc_backend_options)


# Members only come to it, by `register_backend`, which makes a new class of them.
BackendType = _kinds({"TENSORPIPE": BackendValue(_tcp_options, _tcp_agent)})
