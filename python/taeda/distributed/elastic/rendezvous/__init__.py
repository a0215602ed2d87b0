"""How nodes of a job find each other: handlers by name, and what they agree on."""

from __future__ import annotations

from . import api, handlers

__all__ = [*api.__all__]

for _name in api.__all__:
    globals()[_name] = getattr(api, _name)

handlers.register_handlers()
