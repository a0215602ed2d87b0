"""Engines of quantized operators, of which there are none."""

from __future__ import annotations

from ._switches import properties

__all__ = ["supported_engines"]
supported_engines = ["none"]


class _Engine:
    # There is no `flags` for it.
    freezes = False

    @staticmethod
    def read() -> str:
        return "none"

    @staticmethod
    def write(value: str) -> None:
        if value != "none":
            raise NotImplementedError(
                f"backends.quantized.engine: {value!r}: quantized operators are not "
                "implemented"
            )


properties(__name__, engine=_Engine)
