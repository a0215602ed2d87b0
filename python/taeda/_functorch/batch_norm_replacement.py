"""Under PyTorch's name: batch norm without running statistics."""

from __future__ import annotations

from taeda._functorch.modules import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
