"""Profiles as the JSON of Chrome's trace event format, for Perfetto.

Keys and categories are those of PyTorch's traces, which tools look for.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import uuid

from taeda.autograd._profiler_events import MEMORY, NODE, OPERATOR, Recording

_SECOND = 10**9


def _write(path: str, trace: dict) -> None:
    opened = gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")
    with opened as file:
        json.dump(trace, file, separators=(",", ":"), default=str)


def _complete(event, pid: int, tid: int, at: float) -> dict:
    return {
        "ph": "X",
        "cat": getattr(event, "category", "cpu_op"),
        "name": event.trace_name or event.name,
        "pid": pid,
        "tid": tid,
        "ts": round(at, 3),
        "dur": round(event.time_range.elapsed_us(), 3),
    }


def write_events(path: str, events) -> None:
    """Writes a list of events alone."""
    pid = os.getpid()
    made = [_complete(e, pid, e.thread, e.time_range.start) for e in events]
    _write(path, {"traceEvents": made})


class Trace:
    """The trace of a recording."""

    def __init__(self, recording: Recording, name: str, metadata: dict) -> None:
        self.recording = recording
        # Whole seconds, so that the times of the events keep their last digits.
        self.base_ns = recording.start_ns // _SECOND * _SECOND
        self.offset = (recording.start_ns - self.base_ns) / 1000
        self.pid = os.getpid()
        options = recording.options
        self.head = {
            "schemaVersion": 1,
            "deviceProperties": [],
            "trace_id": metadata.pop("trace_id", uuid.uuid4().hex.upper()),
            "record_shapes": int(options.record_shapes),
            "profile_memory": int(options.profile_memory),
            "with_stack": int(options.with_stack),
            "with_flops": int(options.with_flops),
            "with_modules": int(options.with_modules),
            "host_name": socket.gethostname(),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_ns,
            "traceName": str(name),
            **metadata,
        }

    def _tid(self, event) -> int:
        return self.recording.threads[event.thread - 1]

    def _arguments(self, event) -> dict:
        args = {"External id": event.id, "Ev Idx": event.id - 1}
        if event.sequence_nr >= 0:
            args["Sequence number"] = event.sequence_nr
            args["Fwd thread id"] = event.fwd_thread or 0
        if event.concrete_inputs:
            shown = ["" if v is None else str(v) for v in event.concrete_inputs]
            args["Concrete Inputs"] = shown
            args["Input type"] = event.input_dtypes
            args["Input Strides"] = event.structured_input_strides
            args["Input Dims"] = event.structured_input_shapes
        if event.overload_name:
            args["Overload"] = event.overload_name
        if event.stack:
            args["Call stack"] = ";".join(reversed(event.stack))
        if event.module:
            args["Module"] = event.module
        if event.flops:
            args["FLOPs"] = event.flops
        return args

    def _names(self):
        facts = [("process_name", 0, {"name": sys.executable.rpartition("/")[2]})]
        facts.append(("process_labels", 0, {"labels": "CPU"}))
        for tid in self.recording.threads:
            facts.append(("thread_name", tid, {"name": f"thread {tid}"}))
        for name, tid, args in facts:
            yield {"ph": "M", "name": name, "pid": self.pid, "tid": tid, "args": args}

    def _calls(self):
        for event in self.recording.modules:
            at = event.time_range.start + self.offset
            made = _complete(event, self.pid, self._tid(event), at)
            yield {**made, "name": f"nn.Module: {event.name}"}
        for event in self.recording.events:
            if event.kind == MEMORY:
                continue
            at = event.time_range.start + self.offset
            made = _complete(event, self.pid, self._tid(event), at)
            yield {**made, "args": self._arguments(event)}

    def _memory(self):
        for moment in self.recording.memory:
            tid = self.recording.threads[moment.thread - 1]
            args = {
                "Device Type": 0,
                "Device Id": -1,
                "Addr": moment.address,
                "Bytes": moment.size,
                "Total Allocated": moment.total,
                "Total Reserved": 0,
            }
            yield {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                "pid": self.pid,
                "tid": tid,
                "ts": round(moment.time_us + self.offset, 3),
                "args": args,
            }

    def _arrows(self):
        """From calls to the nodes of their derivatives."""
        number = 0
        for event in self.recording.events:
            if event.kind != NODE or event.forward is None:
                continue
            if event.forward.kind != OPERATOR:
                continue
            number += 1
            ends = (("s", event.forward, {}), ("f", event, {"bp": "e"}))
            for phase, end, more in ends:
                yield {
                    "ph": phase,
                    "id": number,
                    "cat": "fwdbwd",
                    "name": "fwdbwd",
                    "pid": self.pid,
                    "tid": self._tid(end),
                    "ts": round(end.time_range.start + self.offset, 3),
                    **more,
                }

    def events(self) -> list[dict]:
        """All of `traceEvents`."""
        length = (self.recording.end_ns - self.recording.start_ns) / 1000
        span = {
            "ph": "X",
            "cat": "Trace",
            "name": "Taeda Profiler (0)",
            "pid": "Spans",
            "tid": "Taeda Profiler",
            "ts": round(self.offset, 3),
            "dur": round(length, 3),
            "args": {"Op count": len(self.recording.events)},
        }
        parts = (self._names(), self._calls(), self._memory(), self._arrows())
        return [*(event for part in parts for event in part), span]

    def write(self, path: str) -> None:
        """Writes the file, compressed where its name ends in `.gz`."""
        _write(path, {**self.head, "traceEvents": self.events()})
