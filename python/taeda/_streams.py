"""Streams and events by device, as `taeda.Stream` and `taeda.Event`."""

from __future__ import annotations

import taeda
from taeda import _C

__all__ = ["Event", "Stream"]

# Numbers of kinds of devices, as other libraries exchange them.
_KINDS = {"cpu": 0, "cuda": 1, "mps": 13, "meta": 14}


def _device(given, index=None, number=None):
    if number is not None:
        kind = next((k for k, n in _KINDS.items() if n == number), None)
        if kind is None:
            raise RuntimeError(f"Stream: no kind of device has the number {number}")
        given = kind if index in (None, -1) else f"{kind}:{index}"
    device = _C.device("cpu" if given is None else given)
    if device.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"Taeda is not linked with support for {device.type} devices"
        )
    return device


def _no_events(device):
    raise RuntimeError(f"{device.type} backend doesn't support events.")


class Stream:
    """The order of work on a device; operators of the CPU have ended when they return.

    Args:
        device: of the stream; by default the CPU, the only one of this build.
        priority: as accelerators have it; there is nothing to choose.
        stream_id, device_index, device_type: a stream by its numbers.

    Raises:
        RuntimeError: the device is not there.
    """

    def __init__(
        self,
        device=None,
        *,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        self._device = _device(device, device_index, device_type)
        self._id = stream_id

    @property
    def device(self):
        """Where it is."""
        return self._device

    @property
    def stream_id(self) -> int:
        """Its number among those of the device."""
        return self._id

    @property
    def device_index(self) -> int:
        """The device's number; -1 where it has none."""
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self) -> int:
        """The number of its kind: 0 for the CPU."""
        return _KINDS[self.device.type]

    @property
    def native_handle(self):
        """The driver's handle; RuntimeError, the CPU has no driver."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def query(self) -> bool:
        """Whether all work has ended: True."""
        return True

    def synchronize(self) -> None:
        """All work has ended."""

    def wait_event(self, event: Event) -> None:
        """Work before the event has ended."""

    def wait_stream(self, other: Stream) -> None:
        """Raises RuntimeError: it takes an event, which the CPU does not have."""
        _no_events(self.device)

    def record_event(self, event: Event | None = None):
        """Raises RuntimeError: the CPU has no events."""
        _no_events(self.device)

    def is_capturing(self) -> bool:
        """Whether work is recorded in place of being done: False."""
        return False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        pass

    def __eq__(self, other) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"{taeda.__name__}.Stream device_type={self.device.type}, "
            f"device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A moment in a stream; one of the CPU can be asked, but not recorded.

    Args:
        device: of its streams; by default the CPU.
        enable_timing: whether `elapsed_time` may be asked for.
        blocking, interprocess: as accelerators have it.
    """

    def __init__(
        self,
        device=None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._device, self._timing = _device(device), enable_timing

    @property
    def device(self):
        """Of its streams."""
        return self._device

    @property
    def event_id(self) -> int:
        """Its number once it is recorded; 0 before."""
        return 0

    @classmethod
    def from_ipc_handle(cls, device, ipc_handle: bytes):
        """Raises NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("Event.from_ipc_handle is not supported")

    def ipc_handle(self) -> bytes:
        """Raises NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("Event.ipc_handle is not supported")

    def record(self, stream: Stream | None = None) -> None:
        """Raises RuntimeError: the CPU has no events."""
        _no_events(self.device)

    def query(self) -> bool:
        """Whether work before it has ended: True."""
        return True

    def wait(self, stream: Stream | None = None) -> None:
        """Work before it has ended."""

    def synchronize(self) -> None:
        """Work before it has ended."""

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds between two events.

        Raises:
            ValueError: timing was not enabled, or one was not recorded.
        """
        if not (self._timing and other._timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        raise ValueError(
            "Both events must be recorded before calculating elapsed time."
        )

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"{taeda.__name__}.Event device_type={self.device.type}, "
            f"device_index={index}, event_flag={int(self._timing)}, "
            f"event_id={self.event_id}"
        )


Stream.__module__ = Event.__module__ = "taeda"
