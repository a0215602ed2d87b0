"""Recording what runs: `profile` as a block, `record_function` to name parts.

`taeda.profiler.profile` has schedules and traces over it. csrc/profiler records.
"""

from __future__ import annotations

import uuid
import warnings
from collections import defaultdict
from functools import wraps
from time import perf_counter_ns

from taeda import _profiler
from taeda._lazy import attributes
from taeda.compiler import is_dynamo_compiling

__all__ = [
    "EnforceUnique",
    "KinetoStepTracker",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]
_NVPROF = ("load_nvprof", "parse_nvprof_trace")
__all__ += _NVPROF
_WHERE = dict.fromkeys(
    ("EventList", "FunctionEvent", "FunctionEventAvg", "Kernel", "MemRecordsAcc"),
    "profiler_util",
)
_lazy = attributes(__name__)

# Whether something is recorded. Written where a recording begins and ends, of which
# there is one in a process; a thread that reads an old value names nothing, or asks
# csrc/profiler, which knows.
_is_profiler_enabled = False


def __getattr__(name: str):
    if name in _NVPROF:
        from taeda.autograd import _nvprof

        return getattr(_nvprof, name)
    if name in _WHERE:
        from taeda.autograd import profiler_util

        return getattr(profiler_util, name)
    return _lazy(name)


class record_function:
    """Names a block, or a function's calls, in profiles; else it costs next to nothing.

    Args:
        name (str): how the block is shown.
        args (str): kept as an attribute.

    Example:
        >>> with taeda.profiler.record_function("forward"):
        ...     y = taeda.ones(2) + 1
    """

    _token = 0

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        if _is_profiler_enabled:
            self._token = _profiler.begin(self.name, False)
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if self._token:
            _profiler.end(self._token)
            self._token = 0

    def __call__(self, func):
        @wraps(func)
        def called(*args, **kwargs):
            with type(self)(self.name, self.args):
                return func(*args, **kwargs)

        return called


class profile:
    """Records the operators and backward nodes of a block, on all threads.

    Args:
        enabled (bool): False: the block runs and nothing is recorded.
        use_cuda, use_device: devices; there is none but the CPU, so with a warning.
        record_shapes (bool): arguments' shapes, dtypes, strides and numbers.
        with_flops (bool): floating-point operations of products and convolutions.
        profile_memory (bool): memory that tensors take and give back.
        with_stack (bool): the Python frames of what the program calls.
        with_modules (bool): the module, by its path, that each call ran in.
        use_kineto, experimental_config, post_processing_timeout_s, activity_filters:
            settings of PyTorch's own recorder, ignored.
        use_cpu (bool): False: nothing is recorded.
        acc_events (bool): entering again adds to the events in place of replacing them.
        custom_trace_id_callback: gives the trace's id; a random one without.

    Raises:
        RuntimeError: entered again while it records, or while another one does.
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict | None = None,
    ) -> None:
        from taeda.autograd._profiler_events import Options

        self.enabled = enabled
        self.use_device = None
        if use_cuda or use_device:
            device = use_device or "cuda"
            warnings.warn(
                f"profile: {device.upper()} is not available, recording the CPU alone",
                stacklevel=2,
            )
        self._options = Options(
            record_shapes, profile_memory, with_stack, with_flops, with_modules
        )
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.with_flops = with_flops
        self.use_cpu, self.acc_events = use_cpu, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.entered = False
        self.trace_id = ""
        self.profiling_start_time_ns = self.profiling_end_time_ns = 0
        self._raw = self._recording = self._hooks = None
        self._earlier: list = []

    def default_trace_id(self) -> str:
        """32 random hexadecimal digits."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """What `custom_trace_id_callback` gives, or random digits."""
        return (self.custom_trace_id_callback or self.default_trace_id)()

    def config(self, create_trace_id: bool = False):
        """What is recorded, as named values; `create_trace_id` makes an id first."""
        if create_trace_id:
            self.trace_id = self.create_trace_id()
        return self._options

    def toggle_collection_dynamic(self, enabled: bool, activities) -> None:
        """Lets the recording pause, or go on, inside of the block.

        Args:
            enabled: whether it goes on.
            activities: of which kinds; that of the CPU is recorded, no other.

        Raises:
            RuntimeError: outside of the block.
        """
        from taeda.profiler._kinds import ProfilerActivity

        if not self.entered:
            raise RuntimeError("profile: toggled outside of the block")
        if ProfilerActivity.CPU not in set(activities):
            return
        if enabled and self._hooks is None and self.use_cpu:
            if self._raw is not None:
                self._earlier += self._done().events
            self._raw = self._recording = None
            self._begin()
        elif not enabled and self._hooks is not None:
            self._end()

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("profile: Profiler context manager is not reentrant")
        if is_dynamo_compiling():  # as in PyTorch: no graph records
            return self
        if self.use_cpu:
            self._begin()
        self.entered = True
        self.trace_id = self.create_trace_id()
        self.profiling_start_time_ns = perf_counter_ns()
        return self

    def _begin(self) -> None:
        global _is_profiler_enabled
        from taeda.autograd._profiler_hooks import Hooks

        options = self._options
        shapes = options.record_shapes or options.with_flops
        _profiler.start(shapes, options.profile_memory, options.with_stack)
        _is_profiler_enabled = True
        self._hooks = Hooks(options.with_modules)

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        if not self.entered:
            return
        self.entered = False
        self.profiling_end_time_ns = perf_counter_ns()
        if self._hooks is not None:
            self._end()

    def _end(self) -> None:
        global _is_profiler_enabled
        self._hooks.remove()
        self._hooks = None
        _is_profiler_enabled = False
        if self.acc_events and self._raw is not None:
            self._earlier += self._done().events
        self._raw, self._recording = _profiler.stop(), None

    def _done(self):
        """The last recording; what was recorded becomes events when it is asked for."""
        if self._recording is None and self._raw is not None:
            from taeda.autograd._profiler_events import Recording

            self._recording = Recording(self._raw, self._options)
        return self._recording

    @property
    def function_events(self):
        """All events as an `EventList`, by time; None before the block has ended."""
        done = self._done()
        if done is None:
            return None
        return done.events._like([*self._earlier, *done.events])

    def _finished(self):
        events = self.function_events
        if events is None:
            raise AssertionError("profile: Expected profiling results: none has ended")
        return events

    def __repr__(self) -> str:
        events = self.function_events
        return "<unfinished taeda.autograd.profile>" if events is None else repr(events)

    def __str__(self) -> str:
        events = self.function_events
        return repr(self) if events is None else str(events)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
    ) -> str:
        """The events as text, a row for each call; see `EventList.table`."""
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        return self._finished().table(
            sort_by, row_limit, *widths, header, top_level_events_only
        )

    def export_chrome_trace(self, path, metadata=None, use_python_export=False) -> None:
        """Writes the last recording for Perfetto; `.gz` compresses.

        Args:
            path (str): the file.
            metadata (dict): further keys of the file, text or values.
            use_python_export (bool): ignored, for there is one way.
        """
        from taeda.autograd._profiler_trace import Trace

        self._finished()
        facts = {"trace_id": self.trace_id, **(metadata or {})}
        Trace(self._recording, path, facts).write(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with weights; see `EventList.export_stacks`."""
        events = self._finished()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def export_page(self, path: str) -> None:
        """Writes the last recording as one HTML page; see `taeda.profiler.profile`."""
        from taeda.profiler._page import write_page

        self._finished()
        write_page(path, self._recording)

    def key_averages(
        self,
        group_by_input_shape=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
    ):
        """Events of one name added up; see `EventList.key_averages`."""
        return self._finished().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self):
        """All events added up."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self._finished().self_cpu_time_total


class _Refused:
    """Marks for a tool whose library this build does not have."""

    _tool = ""

    def __init__(self, enabled=True, record_shapes=False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self):
        if self.enabled:
            raise RuntimeError(
                f"{type(self).__name__}: this build of taeda has no {self._tool}; "
                "taeda.profiler.profile writes traces that Perfetto opens"
            )
        return None

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        return None


class emit_itt(_Refused):
    """Marks for VTune: RuntimeError when entered, unless not `enabled`."""

    _tool = "ITT library"


class emit_nvtx(_Refused):
    """Marks for NVIDIA's tools: RuntimeError when entered, unless not `enabled`."""

    _tool = "CUDA library"


class EnforceUnique:
    """Raises where a key comes a second time."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key) -> None:
        """Takes note of a key; RuntimeError where it was seen."""
        if key in self.seen:
            raise RuntimeError(f"EnforceUnique.see: duplicate key: {key}")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps by who makes them; the step of all is the furthest one's."""

    # Written by the threads that train, one in a program.
    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Lets somebody begin at the step of all."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets somebody; whether they were known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step of somebody's; gives the step of all."""
        own = cls._step_dict.get(requester, cls._current_step)
        cls._step_dict[requester] = own + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The step of all."""
        return cls._current_step
