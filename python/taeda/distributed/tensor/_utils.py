"""What programs ask of layouts, where PyTorch has it."""

from __future__ import annotations

from ._layout import compute_global_tensor_info, compute_local_shape_and_global_offset

__all__ = ["compute_global_tensor_info", "compute_local_shape_and_global_offset"]
