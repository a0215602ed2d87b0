"""Under PyTorch's name: modules as functions."""

from __future__ import annotations

from taeda._functorch.modules import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
