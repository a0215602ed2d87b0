"""`profile`: recordings by a schedule of steps, and what to do with each."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from taeda._lazy import attributes
from taeda.autograd import profiler as recorder
from taeda.autograd._profiler_events import Options
from taeda.compiler import is_dynamo_compiling
from taeda.profiler._kinds import ProfilerAction, ProfilerActivity
from taeda.profiler._schedule import schedule

__all__ = ["profile", "schedule", "tensorboard_trace_handler"]
__getattr__ = attributes(__name__)

_NONE, _WARMUP, _RECORD, _SAVE = ProfilerAction


def _activities(given: Iterable | None) -> set[ProfilerActivity]:
    """The members among activities and dicts by activity; ValueError for doubles."""
    out: set[ProfilerActivity] = set()
    for item in [ProfilerActivity.CPU] if given is None else given:
        if not isinstance(item, (ProfilerActivity, dict)):
            raise TypeError(
                "profile: Expected ProfilerActivity or dict in activities, got "
                f"{type(item)}"
            )
        for activity in item if isinstance(item, dict) else [item]:
            if activity in out:
                raise ValueError(
                    f"profile: Activity {activity} specified more than once"
                )
            out.add(activity)
    return out


class _KinetoProfile:
    """A recording from `start()` to `stop()`; see `profile` for its arguments."""

    def __init__(
        self,
        *,
        activities: Iterable | None = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        execution_trace_observer=None,
        experimental_config=None,
        post_processing_timeout_s: float | None = None,
        **recorded: bool,
    ) -> None:
        self.execution_trace_observer = execution_trace_observer
        self.activities = _activities(activities)
        self._options = Options(**recorded)
        self.__dict__.update(self._options._asdict())
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: recorder.profile | None = None
        self._metadata: dict[str, Any] = {}
        others = self.activities - {ProfilerActivity.CPU}
        self.use_device = None
        for activity in others:
            warnings.warn(
                f"profile: {activity.name} is not available, recording the CPU alone",
                stacklevel=3,
            )

    def start(self) -> None:
        """Begins to record; RuntimeError where something is recorded already."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Ends the recording."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Makes a new recorder, unless events of earlier ones are to be kept."""
        if self.profiler is not None and self.acc_events:
            return
        self.profiler = recorder.profile(
            use_cpu=ProfilerActivity.CPU in self.activities,
            acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
            **self._options._asdict(),
        )

    def start_trace(self) -> None:
        """Begins to record with the recorder that was prepared."""
        own = self._recorder("starting the trace")
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        own.__enter__()

    def stop_trace(self) -> None:
        """Ends the recording."""
        self._recorder("stopping the trace").__exit__(None, None, None)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable) -> None:
        """Lets a recording that is under way pause, or go on.

        Args:
            enable: whether it goes on.
            activities: of which kinds; only that of the CPU can be recorded.

        Raises:
            RuntimeError: nothing is under way.
        """
        own = self._recorder("toggling the collection")
        own.toggle_collection_dynamic(enable, activities)

    def _recorder(self, what: str) -> recorder.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last recording as JSON that https://ui.perfetto.dev opens.

        Args:
            path: the file; `.gz` at its end compresses.
            use_python_export: ignored, for there is one way.
        """
        own = self._recorder("exporting chrome trace")
        own.export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with weights for flame graph tools; takes `with_stack`.

        Args:
            path: the file; a line is frames, outermost first, `;` between them, then
                whole microseconds.
            metric: what is weighed.
        """
        self._recorder("exporting stacks").export_stacks(path, metric)

    def export_page(self, path: str) -> None:
        """Writes one HTML page: timeline, flame graph, memory by module over time.

        The page loads nothing. Memory takes `profile_memory`, modules `with_modules`,
        the flame graph has Python's frames by `with_stack`.
        """
        self._recorder("exporting a page").export_page(path)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes how much memory was in use over time; takes `profile_memory`.

        Args:
            path: by its ending: `.html` is the page of `export_page`; `.json` and
                `.json.gz` are [times in microseconds, [[bytes], ...]]; `raw.json.gz` is
                a list of [nanoseconds, 0 for taken or 3 for given back, bytes, 0].
            device: whose memory; the CPU's, which is the only one recorded.

        Raises:
            RuntimeError: nothing was recorded, or memory was not.
            NotImplementedError: another device.
        """
        from taeda.profiler._memory_timeline import write_timeline

        write_timeline(self, path, device)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ):
        """Events of one name added up, as an `EventList`.

        Args:
            group_by_input_shape: of one list of shapes too; takes `record_shapes`.
            group_by_stack_n: of one place too, by so many frames; takes `with_stack`.
            group_by_overload_name: of one overload too.
        """
        return self._recorder("averaging").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def events(self):
        """The events one by one, as an `EventList`; read after the recording."""
        return self._recorder("accessing events").function_events

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace's file."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace's file."""
        from json import loads

        self._metadata[key] = loads(value)

    preset_metadata_json = add_metadata_json


class profile(_KinetoProfile):
    """Records operators, backward nodes and named blocks of all threads.

    Args:
        activities: members of `ProfilerActivity`; without, all there are (the CPU).
        schedule: a function from a step's number to a `ProfilerAction`, as
            `taeda.profiler.schedule` makes it; without, everything is recorded. Steps
            are named `ProfilerStep#N` and end by `step()`.
        on_trace_ready: called with this object when a recording is complete.
        record_shapes (bool): arguments' shapes, dtypes, strides and numbers.
        profile_memory (bool): memory that tensors take and give back, from the start of
            the recording on.
        with_stack (bool): the Python frames of what the program calls; what runs in a
            backward pass has those of the call that it differentiates.
        with_flops (bool): floating-point operations of products and convolutions.
        with_modules (bool): calls of modules by path, as events of traces and pages.
        experimental_config, post_processing_timeout_s: of PyTorch's recorder, ignored.
        execution_trace_observer: an `ExecutionTraceObserver`, which writes its file
            when a recording ends. It calls operators again under itself, so that they
            are events within events.
        acc_events (bool): recordings add up in place of replacing each other.
        use_cuda: deprecated, see `activities`.
        custom_trace_id_callback: gives each trace its id.

    Raises:
        RuntimeError: on `start`, where something is recorded already.

    Example:
        >>> with taeda.profiler.profile(record_shapes=True) as prof:
        ...     y = taeda.ones(3, 3) @ taeda.ones(3, 3)
        >>> [event.name for event in prof.events()][-1]
        'aten::matmul'
    """

    def __init__(
        self,
        *,
        activities: Iterable | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        wanted = _activities(activities)
        if use_cuda is not None:
            warnings.warn(
                "profile: `use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            change = wanted.add if use_cuda else wanted.discard
            change(ProfilerActivity.CUDA)
        if not wanted:
            raise AssertionError("profile: No valid profiler activities found")
        options = Options(
            record_shapes, profile_memory, with_stack, with_flops, with_modules
        )
        super().__init__(
            activities=wanted,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            execution_trace_observer=execution_trace_observer,
            **options._asdict(),
        )
        self.record_steps = schedule is not None
        self.schedule = schedule or (lambda step: _RECORD)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: recorder.record_function | None = None
        self.current_action = self.schedule(0)
        self._is_in_graph = False

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begins with the schedule's step 0, or where `step()` has come to.

        Code that is captured as a graph records nothing, as in PyTorch.
        """
        self._is_in_graph = is_dynamo_compiling()
        if self._is_in_graph:
            return
        self._go(_NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """Ends; a recording that is under way is handed to `on_trace_ready`."""
        if self._is_in_graph:
            return
        self._close_step()
        self._go(self.current_action, None)

    def step(self) -> None:
        """Ends a step and begins the next."""
        self._close_step()
        before = self.current_action
        following = self.schedule(self.step_num + 1)
        self.step_num += 1
        self.current_action = following
        self._go(before, following)
        self._open_step()

    def _open_step(self) -> None:
        if self.record_steps:
            name = f"ProfilerStep#{self.step_num}"
            self.step_rec_fn = recorder.record_function(name).__enter__()

    def _close_step(self) -> None:
        open_step, self.step_rec_fn = self.step_rec_fn, None
        if open_step is not None:
            open_step.__exit__(None, None, None)

    def _go(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """From one action to the next; None is the end."""
        records = (_RECORD, _SAVE)
        ready = before is _SAVE or (before is _RECORD and after is None)
        running = before in records
        early = {_WARMUP: (_NONE,), _RECORD: (_NONE, _WARMUP)}
        if after in early.get(before, ()):
            warnings.warn(
                f"profile: Incorrect schedule: {before.name} followed by {after.name}",
                stacklevel=3,
            )
        if running and (ready or after not in records):
            self.stop_trace()
            running = False
            if ready and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if after in records and not running:
            self.prepare_trace()
            self.start_trace()

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """What gives the traces of later recordings their ids."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The id of the last recording; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[_KinetoProfile], None]:
    """An `on_trace_ready` that writes traces where TensorBoard's plugin finds them.

    Args:
        dir_name: the folder, which is made where it is not there.
        worker_name: the files' names begin with it; host and process without.
        use_gzip: compress the files.
        use_python_export: ignored, for there is one way.

    Raises:
        RuntimeError: by the handler, where the folder cannot be made.
    """

    def write(prof: _KinetoProfile) -> None:
        import socket
        from time import time_ns

        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError(
                f"tensorboard_trace_handler: Can't create directory: {dir_name}"
            ) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        prof.export_chrome_trace(
            os.path.join(dir_name, f"{worker}.{time_ns()}{ending}")
        )

    return write
