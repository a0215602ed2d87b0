"""The package opt_einsum, which is not needed: `einsum` orders its products itself."""

from __future__ import annotations

enabled = False
strategy = "auto"


def is_available() -> bool:
    """False."""
    return False
