"""The choice of how processes find memory that they share."""

from __future__ import annotations

__all__ = [
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
]

_ALL = frozenset({"file_descriptor", "file_system"})

# One assignment of a str, read once per tensor: threads see the old or the new one.
_chosen = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The strategies that there are.

    "file_descriptor" sends descriptors of files without names, which go with their last
    user; each costs its processes an open file. "file_system" sends names of shared
    memory objects, whose users are counted; one whose user is killed stays behind.
    """
    return set(_ALL)


def get_sharing_strategy() -> str:
    """How tensors are shared that are not shared yet."""
    return _chosen


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how tensors are shared from now on.

    Raises:
        AssertionError: there is no such strategy.
    """
    global _chosen
    if new_strategy not in _ALL:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {set(_ALL)}"
        )
    _chosen = new_strategy
