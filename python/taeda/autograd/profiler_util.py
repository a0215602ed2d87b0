"""What a profile consists of: events, averages of events, lists of either.

Times are microseconds, from the start of the recording; memory is in bytes, more taken
than given back is positive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from taeda._lazy import attributes

__all__ = [
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]
__getattr__ = attributes(__name__)

# Devices that have names of their own in sort keys: all mean `device` here.
_DEVICES = ("cuda", "xpu", "privateuse1")
MEMORY_EVENT_NAME = "[memory]"


def in_units(value: float, units: dict[str, float], pattern: str) -> str:
    """A number in the largest unit that it fills, the last one where it fills none."""
    fitting = [unit for unit, size in units.items() if abs(value) >= size]
    unit = fitting[0] if fitting else [*units][-1]
    return pattern.format(value / units[unit], unit)


def _format_time(time_us: float) -> str:
    return in_units(time_us, {"s": 1e6, "ms": 1e3, "us": 1}, "{:.3f}{}")


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return f"{100 * time_us / total_time_us:.2f}%" if total_time_us else "NaN"


def _format_memory(nbytes: int) -> str:
    if abs(nbytes) < 1024:
        return f"{nbytes} B"
    units = {"GB": 1 << 30, "MB": 1 << 20, "KB": 1 << 10}
    return in_units(nbytes, units, "{:.2f} {}")


def metric_name(name: str) -> str:
    """The attribute that a sort key or metric of any device means."""
    for device in _DEVICES:
        name = name.replace(device, "device")
    return name


class Kernel(NamedTuple):
    """A kernel of an accelerator that an event started."""

    name: str
    device: int
    duration: float


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start}, {self.end})"


def _as_text(name: str) -> property:
    return property(
        lambda self: _format_time(getattr(self, name)), doc=f"`{name}` with its unit."
    )


def _old_name(name: str) -> property:
    return property(lambda self: getattr(self, name), doc=f"Old name of `{name}`.")


class FormattedTimesMixin:
    """Times as text, and times by call, of what has times and a count."""

    cpu_time_str = _as_text("cpu_time")
    device_time_str = _as_text("device_time")
    cpu_time_total_str = _as_text("cpu_time_total")
    device_time_total_str = _as_text("device_time_total")
    self_cpu_time_total_str = _as_text("self_cpu_time_total")
    self_device_time_total_str = _as_text("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Microseconds of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds of a call on an accelerator."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time


# What else is known of an event, in the order in which PyTorch takes it.
_FACTS = (
    "overload_name fwd_thread input_shapes stack scope use_device cpu_memory_usage"
    " device_memory_usage is_async is_remote sequence_nr node_id"
)


class FunctionEvent(FormattedTimesMixin):
    """One call: of an operator, a node of a backward pass, a named block, a kernel.

    Args:
        id (int): its number in the profile, from 1.
        name (str): the operator with its namespace, the node, or the block's name.
        thread (int): the number of its thread, from 1.
        start_us, end_us (float): when it began and ended.
        rest: further attributes, in the order of `_FACTS`; None leaves the default.
        facts: the same and others, by name.
    """

    overload_name = ""
    fwd_thread = None
    scope = 0  # 0 for a function, 1 in a backward pass, 7 for record_function
    node_id = device_index = external_id = -1
    sequence_nr = -1
    count = 1
    use_device = trace_name = flops = None
    cpu_memory_usage = device_memory_usage = 0
    device_time_total = self_device_time_total = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False
    is_user_annotation = is_python_function = False
    cpu_parent: FunctionEvent | None = None

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *rest,
        **facts,
    ) -> None:
        placed = zip(_FACTS.split(), rest, strict=False)
        facts |= {key: value for key, value in placed if value is not None}
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.concrete_inputs, self.stack = [], [], []
        self.structured_input_shapes, self.structured_input_strides = [], []
        self.input_dtypes, self.kwinputs = [], {}
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Kernel] = []
        self.__dict__.update(facts)

    @property
    def device_type(self):
        """The CPU."""
        from taeda.profiler import DeviceType

        return DeviceType.CPU

    @property
    def key(self) -> str:
        """What averages are taken by."""
        return self.name

    @property
    def metadata_json(self) -> str | None:
        """What a tracing library notes about an event: None, ours notes nothing."""
        import warnings

        warnings.warn("`metadata_json` is deprecated", FutureWarning, stacklevel=2)
        return None

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds a kernel of an accelerator."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that ran inside of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Says which event this one ran inside of."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its start to its end."""
        return 0 if self.is_async else self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The same without the events inside."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes without those of the events inside."""
        inside = sum(child.cpu_memory_usage for child in self.cpu_children)
        return self.cpu_memory_usage - inside

    cuda_time_total = _old_name("device_time_total")
    self_cuda_time_total = _old_name("self_device_time_total")
    self_cuda_memory_usage = _old_name("self_device_memory_usage")

    def __repr__(self) -> str:
        inside = [child.id for child in self.cpu_children]
        facts = {
            "id": self.id,
            "name": self.name,
            "overload_name": self.overload_name,
            "cpu_time": self.cpu_time_str,
            "start_us": round(self.time_range.start, 3),
            "end_us": round(self.time_range.end, 3),
            "cpu_children": inside,
            "thread": self.thread,
            "input_shapes": self.input_shapes,
            "cpu_memory_usage": self.cpu_memory_usage,
            "seq_nr": self.sequence_nr,
        }
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        return f"<FunctionEvent {text}>"


# What averages add up, and what they take from their first event.
_SUMS = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
)
_FIRST = (
    "key",
    "overload_name",
    "node_id",
    "is_async",
    "is_remote",
    "is_legacy",
    "is_user_annotation",
    "cpu_parent",
    "cpu_children",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "use_device",
)


class FunctionEventAvg(FormattedTimesMixin):
    """Sums over events of one key; times without `total` are by call."""

    key: str | None = None
    overload_name = None
    node_id = 0
    flops = 0
    is_async = is_remote = is_legacy = is_user_annotation = False
    cpu_parent = input_shapes = stack = scope = device_type = use_device = None

    def __init__(self) -> None:
        self.__dict__.update(dict.fromkeys(_SUMS, 0))
        self.cpu_children = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or what other events add up to; AssertionError by type."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(
                "FunctionEventAvg.add: expected FunctionEvent or FunctionEventAvg, "
                f"got {type(other).__name__}"
            )
        if self.key is None:
            for name in _FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(
                f"FunctionEventAvg.add: expected key {self.key}, got {other.key}"
            )
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    cuda_time_total = _old_name("device_time_total")
    self_cuda_time_total = _old_name("self_device_time_total")

    def __repr__(self) -> str:
        facts = {
            "key": self.key,
            "self_cpu_time": self.self_cpu_time_total_str,
            "cpu_time": self.cpu_time_str,
            "input_shapes": self.input_shapes,
            "cpu_memory_usage": self.cpu_memory_usage,
        }
        text = " ".join(f"{name}={value}" for name, value in facts.items())
        return f"<FunctionEventAvg {text}>"


class EventList(list):
    """Events or averages; prints as a table."""

    def __init__(
        self,
        events: Iterable = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def _like(self, events: Iterable) -> EventList:
        return EventList(
            events,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, a row for each.

        Args:
            sort_by: a time, memory or count of the events, largest first; None for the
                order of the list. `cpu_time`, `self_cpu_time_total`, `count`, ...
            row_limit: rows at most; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width:
                characters of a column at most; None for as many as there are.
            header: a line above.
            top_level_events_only: leave out what ran inside of other events.
            time_unit: "s", "ms" or "us"; None for the one that suits each time.
        """
        from taeda.autograd._profiler_table import Table

        events = self
        if sort_by is not None:
            by = metric_name(sort_by)
            events = sorted(self, key=lambda e: getattr(e, by), reverse=True)
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        table = Table(events, widths, time_unit)
        if self._profile_memory:
            table.add_memory()
        table.add_counts()
        table.add_shapes()
        if self._with_flops:
            table.add_flops()
        table.add_stacks()
        return table.text(row_limit, header, top_level_events_only)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` weighs by."""
        return [f"self_{d}_time_total" for d in ("cpu", *_DEVICES)]

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each event with a stack: frames, outermost first, weight.

        Flame graph tools read it. The frames stand with `;` between them, and the
        weight is whole microseconds; events with none are left out.

        Raises:
            ValueError: the metric is none of `supported_export_stacks_metrics()`.
        """
        known = self.supported_export_stacks_metrics()
        if metric not in known:
            raise ValueError(f"metric should be one of: {known}")
        clean = str.maketrans(dict.fromkeys(" ;\t\n", "_"))
        with open(path, "w") as file:
            for event in self:
                weight = int(getattr(event, metric_name(metric)))
                if event.stack and weight > 0:
                    frames = [f.translate(clean) for f in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {weight}\n")

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events as a trace that Perfetto and chrome://tracing open."""
        from taeda.autograd._profiler_trace import write_events

        write_events(path, self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of one name added up, in the order of the first of each.

        Args:
            group_by_input_shapes: and of one list of input shapes.
            group_by_stack_n: and of one place, as far as so many frames go.
            group_by_overload_name: and of one overload.
        """
        sums: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.is_user_annotation]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            key += event.stack[:group_by_stack_n]
            sums[tuple(key)].add(event)
        for total in sums.values():
            total.stack = total.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                total.input_shapes = ""
            if not group_by_overload_name:
                total.overload_name = ""
        return self._like(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """All events added up, whatever their keys, as `Total`."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key if total.count else None
            total.add(event)
        total.key = "Total"
        return total


class StringTable(defaultdict):
    """Names by themselves."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records with `start_ns()`, found by time.

    Args:
        mem_records: pairs of a record and anything.
    """

    def __init__(self, mem_records: list) -> None:
        self._records = sorted(mem_records, key=lambda pair: pair[0].start_ns())
        self._starts = [record.start_ns() for record, _ in self._records]

    def in_interval(self, start_ns: int, end_ns: int):
        """The pairs whose records lie between two times, ends included."""
        from bisect import bisect_left, bisect_right

        first = bisect_left(self._starts, start_ns)
        yield from self._records[first : bisect_right(self._starts, end_ns)]
