"""Generators of GPUs."""

from __future__ import annotations

from taeda import cuda

_ONE = "get_rng_state initial_seed manual_seed seed set_rng_state"
_ALL = "get_rng_state_all manual_seed_all seed_all set_rng_state_all"
__all__ = sorted(f"{_ONE} {_ALL}".split())
globals().update((name, getattr(cuda, name)) for name in __all__)
