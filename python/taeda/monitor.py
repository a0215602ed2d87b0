"""Events that programs log, and statistics that are logged as events.

`register_event_handler` says who gets them; without a handler logging costs next to
nothing.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

# What the data of an event may be.
data_value_t = str | float | int | bool
# The name of a statistic's events.
STAT_EVENT = "torch.monitor.Stat"


class Aggregation(enum.Enum):
    """What a statistic says of the values of a window: the last of them, their mean,
    number, sum, largest or smallest."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __int__(self) -> int:
        return self.value


globals().update(Aggregation.__members__)


class Event:
    """Something that happened. Those of one kind have one name.

    Args:
        name: of the kind, "my_program.epoch".
        timestamp: when it was.
        data: name -> str, float, int or bool.

    Raises:
        TypeError: another type.

    Example:
        >>> from datetime import datetime
        >>> taeda.monitor.Event("epoch", datetime(2026, 1, 1), {"loss": 0.5}).data
        {'loss': 0.5}
    """

    def __init__(
        self, name: str, timestamp: datetime, data: dict[str, data_value_t]
    ) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data

    def __setattr__(self, name: str, value) -> None:
        kinds = {"name": str, "timestamp": datetime, "data": dict}
        if name in kinds and not isinstance(value, kinds[name]):
            raise TypeError(
                f"Event: {name} has to be a {kinds[name].__name__}, got {value!r}"
            )
        if name == "data":
            for key, entry in value.items():
                if not isinstance(key, str) or not isinstance(entry, data_value_t):
                    raise TypeError(
                        "Event: data has names with str, float, int or bool, got "
                        f"{key!r}: {entry!r}"
                    )
            value = dict(value)
        super().__setattr__(name, value)


class EventHandlerHandle:
    """What `unregister_event_handler` takes; `register_event_handler` makes it."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


# Who gets events: replaced as a whole under the lock, so that readers need none.
_handlers: tuple[EventHandlerHandle, ...] = ()
_lock = threading.Lock()


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Calls a function with each event from now on, in the thread that logs it.

    Returns:
        What takes it back.

    Example:
        >>> from datetime import datetime
        >>> seen = []
        >>> handle = taeda.monitor.register_event_handler(seen.append)
        >>> taeda.monitor.log_event(taeda.monitor.Event("x", datetime.now(), {}))
        >>> taeda.monitor.unregister_event_handler(handle)
        >>> [event.name for event in seen]
        ['x']
    """
    global _handlers
    if not callable(callback):
        raise TypeError(f"register_event_handler: {callback!r} cannot be called")
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers = (*_handlers, handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Calls a function no more.

    Raises:
        ValueError: it is not, or no longer, registered.
    """
    global _handlers
    with _lock:
        if handler not in _handlers:
            raise ValueError("unregister_event_handler: the handler is not registered")
        _handlers = tuple(each for each in _handlers if each is not handler)


def log_event(event: Event) -> None:
    """Gives an event to all handlers; what one raises comes out here."""
    for handler in _handlers:
        handler._callback(event)


class _Values:
    """What is kept of the values of a window."""

    def __init__(self) -> None:
        self.count, self.sum, self.value = 0, 0.0, 0.0
        self.max, self.min = -math.inf, math.inf

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        self.value = value
        self.max, self.min = max(self.max, value), min(self.min, value)

    def fold(self, kind: Aggregation) -> float:
        if kind is Aggregation.MEAN:
            return self.sum / self.count
        return float(getattr(self, kind.name.lower()))


class Stat:
    """Statistics of values over windows of time.

    When a window is over, or has `max_samples` values, they are logged as an event
    "torch.monitor.Stat", whose data is called "NAME.mean" and the like. So is what is
    left when the object goes.

    Args:
        name: said in events.
        aggregations: what is computed.
        window_size: how long a window is, in milliseconds at least.
        max_samples: further values of a window are not counted.

    Example:
        >>> from datetime import timedelta
        >>> kinds = [taeda.monitor.Aggregation.SUM]
        >>> stat = taeda.monitor.Stat("bytes", kinds, timedelta(hours=1), max_samples=2)
        >>> stat.add(3); stat.add(4)
        >>> stat.get()
        {<Aggregation.SUM: 4>: 7.0}
    """

    def __init__(
        self,
        name: str,
        aggregations: Iterable[Aggregation],
        window_size: timedelta,
        max_samples: int = (1 << 63) - 1,
    ) -> None:
        self._lock = threading.Lock()  # guards all below but the name
        self._values = _Values()
        self._full = False
        self.name = name
        self._kinds = tuple(dict.fromkeys(map(Aggregation, aggregations)))
        self._milliseconds = max(1, int(window_size / timedelta(milliseconds=1)))
        self._most = max_samples
        self._window = self._now()
        self._last = dict.fromkeys(self._kinds, 0.0)

    def _now(self) -> int:
        """The number of the window of now."""
        return int(time.monotonic() * 1000) // self._milliseconds

    def add(self, v: float) -> None:
        """Counts a value."""
        value = float(v)
        with self._lock:
            event, window = None, self._now()
            if window != self._window:
                event = self._close()
                self._window, self._full = window, False
            if not self._full:
                self._values.add(value)
            full = None
            if self._values.count >= self._most:
                full, self._full = self._close(), True
        for each in filter(None, (event, full)):
            log_event(each)

    def _close(self) -> Event | None:
        """The event of a window, whose values are forgotten."""
        if self._values.count == 0:
            return None
        self._last = {kind: self._values.fold(kind) for kind in self._kinds}
        self._values = _Values()
        data = {f"{self.name}.{k.name.lower()}": v for k, v in self._last.items()}
        return Event(STAT_EVENT, datetime.now(), data)

    def get(self) -> dict[Aggregation, float]:
        """What was computed of the last window that is over; zeros before."""
        with self._lock:
            return dict(self._last)

    @property
    def count(self) -> int:
        """How many values the current window has."""
        with self._lock:
            return self._values.count

    def __del__(self) -> None:
        event = self._close()
        if event is not None:
            log_event(event)


class TensorboardEventHandler:
    """A handler that writes statistics as scalars; other events are left out.

    Args:
        writer: a `taeda.utils.tensorboard.SummaryWriter`.

    Example:
        >>> def begin(writer):
        ...     handler = taeda.monitor.TensorboardEventHandler(writer)
        ...     return taeda.monitor.register_event_handler(handler)
    """

    def __init__(self, writer) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name != STAT_EVENT:
            return
        for name, value in event.data.items():
            self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
