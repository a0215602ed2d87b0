"""Old names of `taeda.amp`."""

from __future__ import annotations

from taeda import amp as _amp

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):
    """`taeda.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_amp.GradScaler):
    """`taeda.amp.GradScaler("cuda", ...)`."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("cuda", *args, **kwargs)


custom_fwd = _amp.custom_fwd
custom_bwd = _amp.custom_bwd
