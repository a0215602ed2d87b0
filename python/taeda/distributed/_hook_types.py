"""Hooks of gradients that need no function."""

from __future__ import annotations

__all__ = ["BuiltinCommHookType"]


class BuiltinCommHookType:
    """How `DistributedDataParallel._register_builtin_comm_hook` sends buckets.

    `ALLREDUCE` whole, `FP16_COMPRESS` in half precision.

    Args:
        value: the number of one of them.
    """

    _NAMES = {1: "ALLREDUCE", 2: "FP16_COMPRESS"}
    ALLREDUCE: BuiltinCommHookType
    FP16_COMPRESS: BuiltinCommHookType

    def __init__(self, value: int) -> None:
        self._value, self._name = value, self._NAMES[value]

    @property
    def name(self) -> str:
        """How programs call it."""
        return self._name

    @property
    def value(self) -> int:
        """Its number."""
        return self._value

    def __int__(self) -> int:
        return self._value

    def __eq__(self, other) -> bool:
        if not isinstance(other, BuiltinCommHookType):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"<BuiltinCommHookType.{self._name}: {self._value}>"


for _value, _name in BuiltinCommHookType._NAMES.items():
    setattr(BuiltinCommHookType, _name, BuiltinCommHookType(_value))
