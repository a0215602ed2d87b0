"""The natives of the top level, as old programs import them: `_VF.lstm`."""

from __future__ import annotations

from taeda import _C

__all__: list[str] = []


def __getattr__(name: str):
    try:
        return getattr(_C._VariableFunctions, name)
    except AttributeError:
        from taeda._lazy import missing

        raise missing(__name__, name) from None
