"""Turns what csrc/profiler has recorded into events."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from taeda.autograd.profiler_util import MEMORY_EVENT_NAME, EventList, FunctionEvent

# The order of `Kind` and of `Argument::Type` in csrc/profiler/recorder.h.
OPERATOR, EVALUATION, NODE, USER, MODULE, KERNEL, MEMORY = range(7)
_NONE, _TENSOR, _TENSORS, _VALUE = range(4)
_STEP = "ProfilerStep"
_CATEGORIES = {USER: "user_annotation", MODULE: "python_function"}

# C++'s names of dtypes, which traces show.
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


class Moment(NamedTuple):
    """Memory taken or given back (`size` negative), and what is in use after it."""

    time_us: float
    thread: int
    address: int
    size: int
    total: int
    event: FunctionEvent | None
    module: str  # whose call it was, "" outside of modules


class Options(NamedTuple):
    """What a profile was asked for."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False


class Recording:
    """The events of one recording.

    Attributes:
        events: operators, nodes, named blocks and kernels, by time.
        modules: calls of modules, by time.
        memory: moments, by time.
        threads: the system's numbers of the threads, whose events count from 1.
        start_ns, end_ns: of the system's clock.
    """

    def __init__(self, raw: tuple, options: Options) -> None:
        self.start_ns, self.end_ns, threads, self._stacks = raw
        self.options = options
        self.threads = [thread for thread, _, _ in threads]
        self.modules: list[FunctionEvent] = []
        self.memory: list[Moment] = []
        found: list[FunctionEvent] = []
        for number, (_, rows, calls) in enumerate(threads, 1):
            found += self._thread(number, rows, calls)
        self.memory.sort(key=lambda moment: moment.time_us)
        self._add_memory(found)
        found.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
        for number, event in enumerate(found, 1):
            event.id = event.external_id = number
        for parent in found:
            parent.cpu_children.sort(key=lambda child: child.id)
        _follow_forward(found)
        self.events = EventList(
            found,
            profile_memory=options.profile_memory,
            with_flops=options.with_flops,
        )

    def _us(self, ns: int) -> float:
        return (ns - self.start_ns) / 1000

    def _thread(self, thread: int, rows: list, calls: list) -> list[FunctionEvent]:
        """The events of a thread; modules and memory go to their own lists."""
        out: list[FunctionEvent] = []
        # By row, from 1: the event, or for a module's call the one around it.
        at: list[FunctionEvent | None] = [None]
        path = [""]
        for row in rows:
            kind, (name, overload), outer, start, end = row[:5]
            parent = at[outer]
            if kind == MEMORY:
                size, total, address = row[9:]
                facts = (self._us(start), thread, address, size, total)
                self.memory.append(Moment(*facts, parent, path[outer]))
                at.append(None)
                path.append(path[outer])
                continue
            # Steps are one row of a table, and have their numbers in traces.
            shown = _STEP + "*" if name.startswith(_STEP + "#") else name
            event = FunctionEvent(0, shown, thread, self._us(start), self._us(end))
            event.trace_name = name
            event.kind, event.overload_name = kind, overload
            event.category = _CATEGORIES.get(kind, "cpu_op")
            event.stack = self._stack(row[6], parent)
            if kind == MODULE:
                event.module = name
                self.modules.append(event)
                at.append(parent)
                path.append(name)
                continue
            self._fill(event, row, calls)
            event.module = path[outer]
            if parent is not None:
                event.set_cpu_parent(parent)
                parent.append_cpu_child(event)
            at.append(event)
            path.append(path[outer])
            out.append(event)
        return out

    def _stack(self, place: int, parent: FunctionEvent | None) -> list[str]:
        if place == 0:
            return [] if parent is None else parent.stack
        frames = self._stacks[place]
        own = next((i for i, f in enumerate(frames) if not _is_own(f[0])), 0)
        return [f"{file}({line}): {function}" for file, line, function in frames[own:]]

    def _fill(self, event: FunctionEvent, row: tuple, calls: list) -> None:
        kind, sequence, arguments, results = row[0], row[5], row[7], row[8]
        event.sequence_nr = sequence
        event.is_user_annotation = kind == USER
        event.scope = {USER: 7, NODE: 1}.get(kind, 0)
        if not arguments:
            return
        values = calls[arguments - 1]
        if self.options.with_flops and kind == OPERATOR:
            event.flops = _flops(
                event.name, values, calls[results - 1] if results else []
            )
        if self.options.record_shapes:
            _describe(event, values)

    def _add_memory(self, found: list[FunctionEvent]) -> None:
        for moment in self.memory:
            event = moment.event
            if event is None:
                alone = FunctionEvent(
                    0, MEMORY_EVENT_NAME, moment.thread, moment.time_us, moment.time_us
                )
                alone.cpu_memory_usage = moment.size
                alone.kind, alone.category, alone.module = MEMORY, "memory", ""
                found.append(alone)
            while event is not None:
                event.cpu_memory_usage += moment.size
                event = event.cpu_parent


def _is_own(file: str) -> bool:
    """Whether a frame is of what names blocks, and not of the block."""
    return file.endswith(("autograd/profiler.py", "autograd/_profiler_hooks.py"))


def _describe(event: FunctionEvent, values: list) -> None:
    for kind, dtypes, sizes, strides, value in values:
        tensor, tensors = kind == _TENSOR and bool(sizes), kind == _TENSORS
        event.input_shapes.append(sizes[0] if tensor else [])
        event.structured_input_shapes.append(
            sizes[0] if tensor else sizes if tensors else []
        )
        event.structured_input_strides.append(
            strides[0] if tensor else strides if tensors else []
        )
        event.concrete_inputs.append(None if isinstance(value, str) else value)
        if tensor:
            event.input_dtypes.append(_C_TYPES.get(dtypes[0], dtypes[0]))
        elif tensors:
            event.input_dtypes.append("TensorList")
        elif value is None or isinstance(value, str):
            event.input_dtypes.append("")
        else:
            is_list = isinstance(value, list)
            event.input_dtypes.append("ScalarList" if is_list else "Scalar")


def _flops(name: str, values: list, results: list) -> int | None:
    """What a call costs by the formulas of `utils.flop_counter`; None without one."""
    shapes = [
        tuple(sizes[0]) if kind == _TENSOR and sizes else value
        for kind, _, sizes, _, value in values
    ]
    out = [tuple(sizes[0]) for kind, _, sizes, _, _ in results if sizes]
    # Kernels here; the counter's formulas are of what they are made of.
    if name in ("aten::linear", "aten::matmul"):
        return 2 * prod(out[0]) * shapes[0][-1]
    import taeda
    from taeda.utils.flop_counter import flop_registry

    space, _, operator = name.partition("::")
    packet = getattr(getattr(taeda.ops, space), operator, None)
    formula = flop_registry.get(packet)
    if formula is None:
        return None
    return formula(*shapes, out_val=out[0] if len(out) == 1 else out or None)


def _follow_forward(events: list[FunctionEvent]) -> None:
    """Backward nodes, and what runs in them, have their calls' places and modules."""
    made: dict[tuple, FunctionEvent] = {}
    by_number: dict[int, FunctionEvent] = {}
    for event in events:
        if event.kind == OPERATOR and event.sequence_nr >= 0:
            made[event.thread, event.sequence_nr] = event
            by_number[event.sequence_nr] = event
    for event in events:
        event.forward = None
        parent = event.cpu_parent
        if event.kind in (EVALUATION, NODE):
            number = event.sequence_nr
            event.forward = made.get((event.thread, number), by_number.get(number))
        elif parent is not None and parent.kind != USER:
            event.forward = parent.forward
        if event.forward is not None:
            event.fwd_thread = event.forward.thread
            event.stack, event.module = event.forward.stack, event.forward.module
