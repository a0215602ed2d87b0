"""Remote calls: functions that run at other workers, and references to their results.

Design and what a hostile client can do: `docs/design/distributed.md`.
"""

from __future__ import annotations

import itertools

from taeda._lazy import attributes

_PUBLIC = {
    "BackendType": "backend_registry",
    "PyRRef": "_rref",
    "RRef": "_rref",
    "RpcBackendOptions": "options",
    "TensorPipeRpcBackendOptions": "options",
    "WorkerInfo": "_caller",
    "_get_current_rpc_agent": "api",
    "_get_debug_info": "api",
    "_is_current_rpc_agent_set": "api",
    "_rref_context_get_debug_info": "api",
    "_set_rpc_timeout": "api",
    "get_rpc_timeout": "api",
    "get_worker_info": "api",
    "remote": "api",
    "rpc_async": "api",
    "rpc_sync": "api",
    "shutdown": "api",
}
_SUBMODULES = "api backend_registry constants functions internal options".split()
__all__ = [
    *(name for name in _PUBLIC if not name.startswith("_") and name != "PyRRef"),
    "init_rpc",
    "is_available",
]
_find = attributes(__name__, _PUBLIC, _SUBMODULES)
# How often this process joined; every job has its own part of the store.
_joined = itertools.count()


def __getattr__(name: str):
    return _find("RRef" if name == "PyRRef" else name)


def is_available() -> bool:
    """Whether the build has remote calls."""
    from .. import is_available

    return is_available()


def init_rpc(
    name: str,
    backend=None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options=None,
) -> None:
    """Makes this process a worker, which can call others and be called by them.

    Args:
        name: of this worker: letters, digits, -, _ and :.
        backend: a member of `BackendType`; found from the options by default.
        rank: this worker's number, from 0; by default what the URL or RANK says.
        world_size: how many workers there are; by default what the URL or WORLD_SIZE
            says. If nothing says it, workers come and go as they like; rank 0 keeps the
            store and must live as long as others join.
        rpc_backend_options: a `TensorPipeRpcBackendOptions`.

    Raises:
        RuntimeError: it is one already; names or ranks meet twice; not all workers came
            in time.
        TypeError: `backend` or the options are none.

    Example::

        rpc.init_rpc("worker0", rank=0, world_size=2)
        rpc.rpc_sync("worker1", taeda.add, args=(taeda.ones(2), 3))  # tensor([4., 4.])
        rpc.shutdown()
    """
    from .. import PrefixStore
    from ..autograd import _contexts
    from . import _meeting, api, backend_registry

    if api._is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    backend, options = _backend_of(backend, rpc_backend_options)
    limit = max(options.rpc_timeout, 60.0)
    store, rank, world_size = _meeting.meeting_store(
        options.init_method, rank, world_size, limit
    )
    if world_size is not None and world_size < 0:
        world_size = None
    store = PrefixStore(f"rpc/{next(_joined)}", store)
    agent = backend_registry.init_backend(
        backend,
        store=store,
        name=name,
        rank=rank,
        world_size=world_size,
        rpc_backend_options=options,
    )
    api._set_agent(agent)
    _contexts.begin(agent)
    try:
        _meeting.meet(agent)
    except BaseException:
        _contexts.end()
        api._set_agent(None)
        raise


def _backend_of(backend, options):
    """The kind of agent and its options, each found from the other where it lacks."""
    from . import backend_registry
    from .options import RpcBackendOptions, TensorPipeRpcBackendOptions

    kinds = backend_registry.BackendType
    if backend is not None and not isinstance(backend, kinds):
        raise TypeError(
            f"Argument backend must be a member of BackendType, got {backend!r}"
        )
    if options is not None and not isinstance(options, RpcBackendOptions):
        raise TypeError(
            "Argument rpc_backend_options must be an instance of RpcBackendOptions, "
            f"got {type(options).__name__}"
        )
    if backend is None:
        if options is not None and not isinstance(options, TensorPipeRpcBackendOptions):
            raise TypeError(f"Could not infer backend for options {options}")
        backend = kinds.TENSORPIPE
    if options is None:
        options = backend_registry.construct_rpc_backend_options(backend)
    return backend, options
