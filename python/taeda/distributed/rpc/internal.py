"""How values and failures travel, by the names that programs know."""

from __future__ import annotations

from ._call import RemoteException
from ._messages import register_reducer

__all__ = ["RemoteException", "register_reducer"]
