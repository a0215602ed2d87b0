"""Old names of `taeda.amp`, for the GPU."""

from __future__ import annotations

import taeda
from taeda import amp as _amp
from taeda._lazy import attributes
from taeda.amp._old_names import deprecated, names_of

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

autocast, GradScaler = names_of("cuda", taeda.float16)
_MODULES = ("autocast_mode", "common", "grad_scaler")
__getattr__ = attributes(__name__, {"amp_definitely_not_available": "common"}, _MODULES)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`taeda.amp.custom_fwd` with `device_type="cuda"`."""
    deprecated("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`taeda.amp.custom_bwd` with `device_type="cuda"`."""
    deprecated("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _amp.custom_bwd(bwd, device_type="cuda")
