"""Where time and memory go: operators, backward nodes, named blocks, on all threads.

with taeda.profiler.profile(with_stack=True, profile_memory=True) as prof:
    step()
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
prof.export_chrome_trace("trace.json")  # for https://ui.perfetto.dev
prof.export_page("profile.html")  # needs nothing but a browser
"""

from __future__ import annotations

from taeda._lazy import attributes
from taeda.autograd.profiler import record_function
from taeda.profiler._kinds import DeviceType, ProfilerAction, ProfilerActivity
from taeda.profiler._schedule import schedule

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
_WHERE = {
    "ExecutionTraceObserver": "_execution_trace",
    "profile": "profiler",
    "_KinetoProfile": "profiler",
    "tensorboard_trace_handler": "profiler",
}
__getattr__ = attributes(__name__, _WHERE, ("itt", "profiler"))


def __dir__():
    return sorted({*globals(), *_WHERE, "itt"})


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: no, the recorder is Taeda's own."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: the CPU."""
    return {ProfilerActivity.CPU}
