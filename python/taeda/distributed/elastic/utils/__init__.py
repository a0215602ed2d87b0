"""Tools of launchers."""

from __future__ import annotations

import os
import socket
from string import Template
from typing import Any

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """A variable of the environment.

    Raises:
        ValueError: it is not set.
    """
    if env_name not in os.environ:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return os.environ[env_name]


def get_socket_with_port() -> socket.socket:
    """A socket that listens at a free port of this machine; close it to use the port.

    Raises:
        RuntimeError: there is none.
    """
    found = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)
    for family, kind, protocol, _, _ in found:
        listener = socket.socket(family, kind, protocol)
        try:
            listener.bind(("localhost", 0))
            listener.listen(0)
        except OSError:
            listener.close()
        else:
            return listener
    raise RuntimeError("Failed to create a socket: localhost has no free port")


class macros:
    """Words in a program's arguments that each worker gets its own value of."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[str]:
        """The arguments of one worker.

        Args:
            args: texts with `${local_rank}` in them; others stay.
            local_rank: the worker's.
        """
        return [
            Template(arg).safe_substitute(local_rank=local_rank)
            if isinstance(arg, str)
            else arg
            for arg in args
        ]
