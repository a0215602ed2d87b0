"""Hooks for `FullyShardedDataParallel.register_comm_hook`."""

from __future__ import annotations

from . import default_hooks as default

__all__ = ["LOW_PRECISION_HOOKS", "default"]

LOW_PRECISION_HOOKS = [default.fp16_compress_hook, default.bf16_compress_hook]
