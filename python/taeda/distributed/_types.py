"""Reduction operations and the options of collectives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taeda._distributed import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GatherOptions",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "TCPStore",
]

for _error in (DistBackendError, DistError, DistNetworkError, DistStoreError):
    _error.__module__ = "taeda.distributed"

_NAMES = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")


class _Names(type):
    """`ReduceOp.SUM` and the others, one object each, as attributes of the class."""

    def __getattr__(cls, name: str):
        if name not in _NAMES:
            raise AttributeError(f"type object 'ReduceOp' has no attribute {name!r}")
        made = cls(name)
        setattr(cls, name, made)
        return made

    def __dir__(cls):
        return [*super().__dir__(), *_NAMES, "RedOpType"]


class ReduceOp(metaclass=_Names):
    """How a reduction combines the ranks' values.

    `SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, the bitwise `BAND`, `BOR` and `BXOR` of
    integers, and `PREMUL_SUM(factor)`, a sum of values multiplied by a number.

    Args:
        op: one of them, or its name.
        factor: of `PREMUL_SUM`.
    """

    def __init__(self, op: ReduceOp | str, factor: float = 1.0) -> None:
        if isinstance(op, ReduceOp):
            op, factor = op.name, op.factor
        if op not in _NAMES:
            raise TypeError(f"ReduceOp: expected one of {_NAMES}, got {op!r}")
        self.name, self._factor = op, float(factor)

    @property
    def factor(self) -> float:
        """By what `PREMUL_SUM` multiplies."""
        return self._factor

    @property
    def value(self) -> int:
        """The number of the operation."""
        return _NAMES.index(self.name)

    @property
    def op(self) -> ReduceOp:
        """The operation without a factor."""
        return getattr(ReduceOp, self.name)

    def __call__(self, factor) -> ReduceOp:
        if self.name != "PREMUL_SUM":
            raise TypeError(f"ReduceOp.{self.name} takes no factor")
        return ReduceOp(self.name, float(factor))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReduceOp):
            return NotImplemented
        return (self.name, self.factor) == (other.name, other.factor)

    def __hash__(self) -> int:
        return hash((self.name, self.factor))

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __reduce__(self):
        return ReduceOp, (self.name, self.factor)

    def __deepcopy__(self, memo) -> ReduceOp:
        return self


ReduceOp.RedOpType = ReduceOp


def _sum() -> ReduceOp:
    return ReduceOp.SUM


def _barrier(
    self: Store, key: str, world_size: int, timeout: timedelta | None = None
) -> None:
    """Waits until `world_size` callers have come with this key.

    Args:
        key: of this barrier; each may be used once.
        world_size: how many callers.
        timeout: the store's own by default.

    Raises:
        DistStoreError: not all came in time.
        ValueError: more came than there should be.
    """
    came = self.add(f"{key}/came", 1)
    if came > world_size:
        raise ValueError(
            f"Store.barrier: caller {came} of {world_size} came to {key!r}; each key "
            "serves once"
        )
    if came == world_size:
        self.set(f"{key}/all", "1")
    self.wait([f"{key}/all"], *(() if timeout is None else (timeout,)))


Store.barrier = _barrier


class _Options:
    """What a collective may be told; `timeout` None means the group's."""

    __slots__ = ("asyncOp", "timeout")
    _extra: dict[str, Any] = {}

    def __init__(self) -> None:
        self.timeout: timedelta | None = None
        self.asyncOp = False
        for name, value in self._extra.items():
            setattr(self, name, value() if callable(value) else value)

    def __repr__(self) -> str:
        names = ("timeout", "asyncOp", *self._extra)
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({inside})"


def _options(name: str, **extra) -> type[_Options]:
    names = "timeout", "asyncOp", *extra
    space = {
        "__slots__": (*extra,),
        "_extra": extra,
        "__doc__": f"Options of a collective: {', '.join(names)}.",
        "__module__": __name__,
    }
    return type(name, (_Options,), space)


AllreduceOptions = _options("AllreduceOptions", reduceOp=_sum)
AllreduceCoalescedOptions = _options("AllreduceCoalescedOptions", reduceOp=_sum)
BroadcastOptions = _options("BroadcastOptions", rootRank=0, rootTensor=0)
ReduceOptions = _options("ReduceOptions", reduceOp=_sum, rootRank=0, rootTensor=0)
AllgatherOptions = _options("AllgatherOptions")
GatherOptions = _options("GatherOptions", rootRank=0)
ScatterOptions = _options("ScatterOptions", rootRank=0)
ReduceScatterOptions = _options("ReduceScatterOptions", reduceOp=_sum)
AllToAllOptions = _options("AllToAllOptions")
BarrierOptions = _options("BarrierOptions", device_ids=list, device=None)
