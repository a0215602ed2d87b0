"""Values that stand where nothing else is said."""

from __future__ import annotations

DEFAULT_RPC_TIMEOUT_SEC: float = 60.0
DEFAULT_INIT_METHOD: str = "env://"
# `shutdown` waits without a limit.
DEFAULT_SHUTDOWN_TIMEOUT: float = 0
DEFAULT_NUM_WORKER_THREADS: int = 16
# The agent's own limit holds.
UNSET_RPC_TIMEOUT: float = -1.0

__all__: list[str] = []
