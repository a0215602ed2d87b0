"""What `taeda.cpu.amp` and `taeda.cuda.amp` hold: deprecated names of `taeda.amp`."""

from __future__ import annotations

import warnings

import taeda
from taeda import amp as _amp

__all__ = ["deprecated", "names_of"]


def deprecated(kind: str, old: str, now: str) -> None:
    """Warns of a name of `taeda.KIND.amp`."""
    library = taeda.__name__
    warnings.warn(
        f"`{library}.{kind}.amp.{old}(args...)` is deprecated. Please use "
        f"`{library}.amp.{now}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def names_of(kind: str, fast) -> tuple[type, type]:
    """`autocast` and `GradScaler` for one kind of device.

    Args:
        kind: "cpu" or "cuda".
        fast: the dtype that autocast computes in if nothing is said.
    """

    class autocast(_amp.autocast):
        __doc__ = f'`taeda.amp.autocast("{kind}", ...)`.'

        def __init__(
            self, enabled: bool = True, dtype=fast, cache_enabled: bool = True
        ) -> None:
            deprecated(kind, "autocast", f"autocast('{kind}', args...)")
            super().__init__(kind, dtype, enabled, cache_enabled)

    class GradScaler(_amp.GradScaler):
        __doc__ = f'`taeda.amp.GradScaler("{kind}", ...)`.'

        def __init__(self, *schedule, **options) -> None:
            deprecated(kind, "GradScaler", f"GradScaler('{kind}', args...)")
            super().__init__(kind, *schedule, **options)

    for cls in (autocast, GradScaler):
        cls.__module__, cls.__qualname__ = f"taeda.{kind}.amp", cls.__name__
    return autocast, GradScaler
