"""Streams and events by device, as `taeda.Stream` and `taeda.Event`."""

from __future__ import annotations

import taeda
from taeda import _C

__all__ = ["Event", "Stream"]

# Numbers of kinds of devices, as other libraries exchange them.
_KINDS = {"cpu": 0, "cuda": 1, "mps": 13, "meta": 14}
_PROGRAM = 20  # the device that a program added, whatever its name is


def _is_program(device) -> bool:
    return device.type == _C._get_privateuse1_backend_name()


def _stream_of(device, stream) -> tuple[int, int]:
    """Device and number of a stream; those of the current one without any."""
    from taeda import _cuda

    if stream is not None:
        return stream.device_index, stream.stream_id
    index = _C.device(device).index
    index = _cuda.program_device() if index is None else index
    return index, _cuda.program_stream(index)


def _device(given, index=None, number=None):
    if number is not None:
        kind = next((k for k, n in _KINDS.items() if n == number), None)
        if number == _PROGRAM:
            kind = _C._get_privateuse1_backend_name()
        if kind is None:
            raise RuntimeError(f"Stream: no kind of device has the number {number}")
        given = kind if index in (None, -1) else f"{kind}:{index}"
    device = _C.device("cpu" if given is None else given)
    if _is_program(device):
        from taeda import _program_device

        return _C.device(device.type, _program_device.index_of(device))
    if device.type not in ("cpu", "meta"):
        raise RuntimeError(
            f"Taeda is not linked with support for {device.type} devices"
        )
    return device


def _no_events(device):
    raise RuntimeError(f"{device.type} backend doesn't support events.")


class Stream:
    """The order of work on a device; operators of the CPU have ended when they return.

    On the device of a program it is a new stream unless its number is given, the
    current one inside `with`. `taeda.cuda.Stream` is the one for GPUs.

    Args:
        device: of the stream; by default the CPU.
        priority: as the device has it.
        stream_id, device_index, device_type: a stream by its numbers.

    Raises:
        RuntimeError: the device is not there.
    """

    def __init__(
        self,
        device=None,
        *,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> None:
        self._device = _device(device, device_index, device_type)
        self._before: list[tuple[int, int, int]] = []
        if stream_id is None and _is_program(self._device):
            from taeda import _cuda

            stream_id = _cuda.new_program_stream(self._device.index, priority)
        self._id = stream_id or 0

    @property
    def _place(self) -> tuple[int, int]:
        return self.device_index, self.stream_id

    def _functions(self):
        """The module of functions where a program's device does the work, or None."""
        if not _is_program(self._device):
            return None
        from taeda import _cuda

        return _cuda

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
        return _KINDS.get(self.device.type, _PROGRAM)

    @property
    def native_handle(self):
        """The driver's handle; RuntimeError, the CPU has no driver."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def query(self) -> bool:
        """Whether all work has ended: True on the CPU."""
        native = self._functions()
        return native is None or native.query_program_stream(*self._place)

    def synchronize(self) -> None:
        """Waits until all work has ended."""
        if native := self._functions():
            native.wait_program_stream(*self._place)

    def wait_event(self, event: Event) -> None:
        """What follows here waits for work before the event."""
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        """What follows here waits for work in another stream.

        Raises:
            RuntimeError: it takes an event, which the CPU does not have.
        """
        self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None):
        """An event here: the one given, or a new one.

        Raises:
            RuntimeError: the CPU has no events.
        """
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        """Whether work is recorded in place of being done: False."""
        return False

    def __enter__(self) -> Stream:
        if native := self._functions():
            device, index = native.program_device(), self.device_index
            self._before.append((device, index, native.program_stream(index)))
            native.set_program_device(index)
            native.set_program_stream(*self._place)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        if native := self._functions():
            device, index, number = self._before.pop()
            native.set_program_stream(index, number)
            native.set_program_device(device)

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
        self._native = None
        if _is_program(self._device):
            from taeda import _cuda

            self._native = _cuda.ProgramEvent(enable_timing)

    @property
    def device(self):
        """Of its streams."""
        return self._device

    @property
    def event_id(self) -> int:
        """Its number once it is recorded; 0 before."""
        return 0 if self._native is None else self._native.id()

    @classmethod
    def from_ipc_handle(cls, device, ipc_handle: bytes):
        """Raises NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("Event.from_ipc_handle is not supported")

    def ipc_handle(self) -> bytes:
        """Raises NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("Event.ipc_handle is not supported")

    def record(self, stream: Stream | None = None) -> None:
        """Puts the event behind what a stream has now, by default the current one.

        Raises:
            RuntimeError: the CPU has no events.
        """
        if self._native is None:
            _no_events(self.device)
        self._native.record(*_stream_of(self._device, stream))

    def query(self) -> bool:
        """Whether work before it has ended: True on the CPU."""
        return self._native is None or self._native.query()

    def wait(self, stream: Stream | None = None) -> None:
        """What follows in a stream, by default the current one, waits for the event."""
        if self._native is not None:
            self._native.block(*_stream_of(self._device, stream))

    def synchronize(self) -> None:
        """Waits until work before it has ended."""
        if self._native is not None:
            self._native.wait()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds between two events.

        Raises:
            ValueError: timing was not enabled, or one was not recorded.
        """
        if not (self._timing and other._timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        if not (self.event_id and other.event_id):
            raise ValueError(
                "Both events must be recorded before calculating elapsed time."
            )
        return self._native.until(other._native)

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"{taeda.__name__}.Event device_type={self.device.type}, "
            f"device_index={index}, event_flag={int(self._timing)}, "
            f"event_id={self.event_id}"
        )


Stream.__module__ = Event.__module__ = "taeda"
