"""Queues of work on GPUs, and marks in them."""

from __future__ import annotations

import taeda
from taeda.cuda._devices import _driver, device, index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream:
    """A queue: work in one is done in order, work in two at any time.

    Args:
        device: the GPU; the current one by default.
        priority: smaller numbers go first, within what the device has.
        kwargs: `stream_id`, `device_index`, `device_type` of a stream that there is.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        unknown = kwargs.keys() - {"stream_id", "device_index", "device_type"}
        if unknown:
            raise TypeError(f"Stream() got unexpected arguments {sorted(unknown)}")
        functions = _driver()
        given, stream_id = kwargs.get("device_index"), kwargs.get("stream_id")
        self.device_index = index_of(device) if given is None else given
        if stream_id is None:
            stream_id = functions.new_stream(self.device_index, priority)
        self.stream_id = stream_id

    @property
    def device(self) -> Any:
        """The stream's GPU."""
        import taeda

        return taeda.device("cuda", self.device_index)

    @property
    def device_type(self) -> int:
        """The number of "cuda" among device types."""
        return 1

    @property
    def cuda_stream(self) -> int:
        """The driver's handle, for other libraries."""
        return _driver().stream_handle(self.device_index, self.stream_id)

    @property
    def priority(self) -> int:
        """The priority that the device gave it."""
        return _driver().stream_priority(self.device_index, self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        return 0, -5

    def query(self) -> bool:
        """Whether all its work is done."""
        return _driver().stream_query(self.device_index, self.stream_id)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        _driver().stream_wait(self.device_index, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark at its end; a new one by default."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Go on only when the mark is passed."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Go on only when what is in another stream now is done."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self._context.__exit__(type, value, traceback)

    def __eq__(self, o: object) -> bool:
        if not isinstance(o, Stream):
            return NotImplemented
        mine = (self.device_index, self.stream_id)
        return mine == (o.device_index, o.stream_id)

    def __hash__(self) -> int:
        return hash((self.device_index, self.stream_id))

    def __repr__(self) -> str:
        handle = f"{self.cuda_stream:#x}"
        kind = f"{taeda.__name__}.cuda.Stream"
        return f"<{kind} device={self.device} cuda_stream={handle}>"


class Event:
    """A mark in a stream, which can be waited for and timed.

    Args:
        enable_timing: whether `elapsed_time` can use it.
        blocking: whether `synchronize` sleeps rather than spins.
        interprocess: whether other processes can have it, by `ipc_handle`; it cannot be
            timed then.

    Raises:
        ValueError: both `interprocess` and `enable_timing`.
        NotImplementedError: `external`.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if external:
            raise NotImplementedError("cuda.Event: external=True is not there yet")
        if interprocess and enable_timing:
            raise ValueError(
                "cuda.Event: an event of several processes cannot be timed, got "
                "interprocess=True and enable_timing=True"
            )
        functions = _driver()
        index = functions.current_device()
        self._event = functions.Event(index, enable_timing, blocking, interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark at the end of a stream; of the current one by default."""
        stream = current_stream() if stream is None else stream
        self._event.record(stream.device_index, stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream go on only when the mark is passed."""
        stream = current_stream() if stream is None else stream
        self._event.block(stream.device_index, stream.stream_id)

    def query(self) -> bool:
        """Whether the mark is passed, as it is when it was never recorded."""
        return self._event.query()

    def synchronize(self) -> None:
        """Wait until the mark is passed."""
        self._event.wait()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another one.

        Raises:
            ValueError: a mark without `enable_timing`.
            RuntimeError: one that was not recorded, or is not passed.
        """
        return self._event.until(end_event._event)

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """The mark of another process, by its handle.

        Args:
            device: the GPU that it is of.
            handle: what `ipc_handle` gave there.

        Raises:
            AssertionError: there is no GPU.
            RuntimeError: the process is gone, or it is this one.
        """
        event = cls.__new__(cls)
        event._event = _driver().Event.open(index_of(device), bytes(handle))
        return event

    def ipc_handle(self) -> bytes:
        """A handle for other processes, which see it pass as long as it is alive here.

        Raises:
            RuntimeError: it was not made with `interprocess=True`.
        """
        return self._event.handle()

    def __repr__(self) -> str:
        return f"<{taeda.__name__}.cuda.Event {id(self):#x}>"


class ExternalStream(Stream):
    """A stream of another library, by its handle: not there yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("cuda.ExternalStream: streams of other libraries")


class StreamContext:
    """Makes a stream, and its GPU, current inside `with`; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = self.stream.device_index
        self._device = device(index)
        self._device.__enter__()
        self._before = current_stream(index)
        set_stream(self.stream)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is None:
            return
        set_stream(self._before)
        self._device.__exit__(type, value, traceback)


def stream(stream: Stream | None) -> StreamContext:
    """A context in which a stream is the current one; None changes nothing."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one of its GPU, for this thread."""
    if stream is not None:
        _driver().set_stream(stream.device_index, stream.stream_id)


def current_stream(device: Any = None) -> Stream:
    """The thread's current stream of a GPU."""
    functions = _driver()
    index = index_of(device)
    identity = functions.current_stream(index)
    return Stream(stream_id=identity, device_index=index)


def default_stream(device: Any = None) -> Stream:
    """The stream of a GPU that is current where no other was chosen."""
    _driver()
    return Stream(stream_id=0, device_index=index_of(device))
