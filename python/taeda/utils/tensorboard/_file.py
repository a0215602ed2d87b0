"""`FileWriter`: one event file."""

from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from typing import Any

from . import _messages as messages
from ._records import RecordWriter

# Numbers the files that one process opens within a second; `next` is atomic.
_serial = itertools.count()
# What the first event of a file says that the file is.
VERSION = "brain.Event:2"


class FileWriter:
    """Appends events to a new file of a folder; safe to use from several threads.

    Events are kept back until there are `max_queue` of them or `flush_secs` seconds
    have passed, whichever comes first.

    Args:
        log_dir: the folder, made if it is missing.
        max_queue: how many events are kept back at most.
        flush_secs: for how many seconds.
        filename_suffix: what the file's name ends with.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self._log_dir = str(log_dir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix
        self._lock = threading.Lock()
        self._file: Any = None
        self._timer: threading.Timer | None = None
        self.reopen()

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self._log_dir

    def add_event(
        self, event: Any, step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write an event; its time is now unless given (seconds since 1970)."""
        now = time.time() if walltime is None else walltime
        # A step of 0 is the same as none in a message.
        event.MergeFrom(messages.Event(wall_time=now, step=int(step or 0)))
        data = event.SerializeToString()
        with self._lock:
            if self._file is None:
                return
            self._records.write(data)
            self._pending += 1
            if self._pending >= self._max_queue:
                self._file.flush()
                self._pending = 0
            elif self._timer is None:
                self._timer = threading.Timer(self._flush_secs, self._on_time)
                self._timer.daemon = True
                self._timer.start()

    def add_summary(
        self,
        summary: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write an event that holds a summary."""
        self.add_event(messages.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Write a graph and how long its parts took.

        Args:
            graph_profile: two messages of TensorFlow's, GraphDef and RunMetadata.
            walltime: seconds since 1970; now by default.
        """
        graph, run = graph_profile
        self.add_onnx_graph(graph, walltime)
        tagged = messages.TaggedRun(tag="step1", run_metadata=run.SerializeToString())
        event = messages.Event(tagged_run_metadata=tagged)
        self.add_event(event, None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a graph, a message GraphDef of TensorFlow's."""
        event = messages.Event(graph_def=graph.SerializeToString())
        self.add_event(event, None, walltime)

    def _on_time(self) -> None:
        with self._lock:
            self._timer = None
            if self._file is not None:
                self._file.flush()
                self._pending = 0

    def flush(self) -> None:
        """Hand all events to the system."""
        with self._lock:
            if self._file is not None:
                self._file.flush()
                self._pending = 0

    def close(self) -> None:
        """Close the file; events that come later are dropped until `reopen`."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._file is not None:
                self._file.close()
                self._file = None

    def reopen(self) -> None:
        """Begin a new file, unless one is open."""
        with self._lock:
            if self._file is not None:
                return
            os.makedirs(self._log_dir, exist_ok=True)
            name = (
                f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
                f".{os.getpid()}.{next(_serial)}{self._suffix}"
            )
            self._file = open(os.path.join(self._log_dir, name), "xb")
            self._records = RecordWriter(self._file)
            self._pending = 0
        self.add_event(messages.Event(file_version=VERSION))
        self.flush()
