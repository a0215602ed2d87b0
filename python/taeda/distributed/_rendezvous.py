"""How ranks find each other: a URL becomes a store, a rank and a size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qsl, urlparse

import taeda

from ._types import DistError, FileStore, PrefixStore, Store, TCPStore
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

# Scheme -> handler. Changed by register_rendezvous_handler alone.
_handlers: dict[str, Callable[..., Iterator]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable) -> None:
    """Makes a URL scheme known.

    Args:
        scheme: what stands before "://".
        handler: called with the URL; yields (store, rank, world_size).

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs) -> Iterator:
    """The stores, ranks and sizes that a URL leads to.

    Args:
        url: "env://", "tcp://host:port" or "file:///path", with `?rank=0&world_size=2`
            where they are not given here.
        rank: of this process.
        world_size: how many ranks meet.

    Raises:
        ValueError: parts are missing.
        RuntimeError: nobody knows the scheme.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string, got {type(url).__name__}: {url}")
    parts = urlparse(url)
    given = dict(parse_qsl(parts.query))
    for name, value in (("rank", rank), ("world_size", world_size)):
        if value == -1 or value is None:
            continue
        if name in given:
            raise ValueError(f"The url: {url} has node-specific arguments: {name}")
        given[name] = str(value)
    handler = _handlers.get(parts.scheme)
    if handler is None:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return handler(parts, given, **kwargs)


def _library() -> str:
    return f"{taeda.__name__}.distributed"


def _number(given: dict[str, str], name: str, scheme: str) -> int:
    if name not in given:
        raise ValueError(
            f"Error initializing {_library()} using {scheme} rendezvous: "
            f"{name} parameter missing"
        )
    return int(given[name])


def _by_file(parts, given, **kwargs) -> Iterator:
    path = parts.netloc + parts.path
    if not path:
        raise ValueError(
            f"Error initializing {_library()} using file:// rendezvous: path missing"
        )
    rank = _number(given, "rank", "file://")
    world_size = _number(given, "world_size", "file://")
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _store_of_agent() -> bool:
    """Whether the launcher's agent keeps the store, so that no rank is its server."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _tcp_store(host: str, port: int, rank: int, world_size: int, timeout) -> Store:
    limit, of_agent = timeout or default_pg_timeout, _store_of_agent()
    serves = rank == 0 and not of_agent
    try:
        # The group waits for its ranks: it can name those that do not come.
        options = {"wait_for_workers": False, "multi_tenant": True}
        store: Store = TCPStore(host, port, world_size, serves, limit, **options)
    except DistError as error:
        place = f"init_process_group: rank {rank} of {world_size}"
        raise type(error)(f"{place} does not reach the store: {error}") from None
    if of_agent:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"/worker/attempt_{attempt}", store)
    return store


def _by_tcp(parts, given, timeout: timedelta | None = None, **kwargs) -> Iterator:
    if not parts.port:
        raise ValueError(
            f"Error initializing {_library()} using tcp:// rendezvous: port number "
            "missing"
        )
    rank = _number(given, "rank", "tcp://")
    world_size = _number(given, "world_size", "tcp://")
    store = _tcp_store(parts.hostname, parts.port, rank, world_size, timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"Error initializing {_library()} using env:// rendezvous: "
            f"environment variable {name} expected, but not set"
        )
    return value


def _by_environment(
    parts, given, timeout: timedelta | None = None, **kwargs
) -> Iterator:
    rank = int(given["rank"] if "rank" in given else _environment("RANK"))
    size = given["world_size"] if "world_size" in given else _environment("WORLD_SIZE")
    world_size = int(size)
    host, port = _environment("MASTER_ADDR"), int(_environment("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("file", _by_file)
