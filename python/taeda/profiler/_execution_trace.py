"""Traces of operators with their arguments and results, for tools that run them again.

The file is JSON after the schema "1.1.1-chakra.0.0.4": a node for each operator that
runs under autograd on the observing thread, with the geometry of its tensors and the
numbers among its arguments; a tensor is [its number, its storage's number, offset,
elements, bytes of one, device].
"""

from __future__ import annotations

import json
import os
from time import monotonic, strftime

import taeda
from taeda.utils._python_dispatch import TorchDispatchMode

__all__ = ["ExecutionTraceObserver"]

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS, _THREAD = 1, 2  # the numbers of the first nodes
_SCOPE_OF_USERS = 7
_NAMES = {bool: "Bool", int: "Int", float: "Double", str: "String", type(None): "None"}


class _Recorder(TorchDispatchMode):
    """Makes a node of each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[dict] = []
        self._last = _THREAD
        # Storages by address, which a later one may get again; tensors by the storage
        # and their place in it.
        self._numbers: dict[object, int] = {}

    def _next(self) -> int:
        self._last += 1
        return self._last

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        number = self._next()
        inputs = self._values([*args, *kwargs.values()])
        result = func(*args, **kwargs)
        several = isinstance(result, (tuple, list))
        outputs = self._values(list(result) if several else [result])
        schema = str(func._schema)
        self.nodes.append(
            _node(
                number, func.name().partition(".")[0], _THREAD, inputs, outputs, schema
            )
        )
        return result

    def _values(self, values: list) -> dict[str, list]:
        parts = [self._described(value) for value in values]
        names = ("values", "shapes", "types", "strides")
        return {name: [p[i] for p in parts] for i, name in enumerate(names)}

    def _described(self, value) -> tuple:
        """Value, shape, type and strides."""
        if isinstance(value, taeda.Tensor):
            shape, strides = list(value.shape), []
            if value.layout is taeda.strided:
                strides = list(value.stride())
            kind = str(value.dtype).rpartition(".")[2]
            return self._tensor(value), shape, f"Tensor({_c_type(kind)})", strides
        if isinstance(value, (list, tuple)):
            parts = [self._described(v) for v in value]
            columns = [[p[i] for p in parts] for i in range(4)]
            kind = f"GenericList[{','.join(columns[2])}]"
            return columns[0], columns[1], kind, columns[3]
        kind = _NAMES.get(type(value))
        if kind is None:
            return str(value), [], type(value).__name__.capitalize(), []
        return "<None>" if value is None else value, [], kind, []

    def _tensor(self, value) -> list:
        storage, offset, place = 0, 0, object()
        if value.layout is taeda.strided and value.device.type != "meta":
            storage = self._number(value.untyped_storage().data_ptr())
            offset = value.storage_offset()
            strides = tuple(value.stride())
            place = storage, offset, tuple(value.shape), strides, value.dtype
        itemsize, device = value.dtype.itemsize, str(value.device)
        number = self._number(place)
        return [number, storage, offset, value.numel(), itemsize, device]

    def _number(self, of: object) -> int:
        if of not in self._numbers:
            self._numbers[of] = self._next()
        return self._numbers[of]


def _c_type(name: str) -> str:
    from taeda.autograd._profiler_events import _C_TYPES

    return _C_TYPES.get(name, name)


def _node(
    number: int, name: str, parent: int, inputs=None, outputs=None, schema: str = ""
) -> dict:
    empty: dict = {"values": [], "shapes": [], "types": [], "strides": []}
    scope = _SCOPE_OF_USERS if not schema else 0
    facts = (
        ("rf_id", "uint64", number),
        ("fw_parent", "uint64", 0),
        ("seq_id", "int64", -1),
        ("scope", "uint64", scope),
        ("tid", "uint64", 1 if parent != number else 0),
        ("fw_tid", "uint64", 0),
        ("op_schema", "string", schema),
        ("kernel_backend", "string", ""),
        ("kernel_file", "string", ""),
        ("tensor_range", "string", ""),
    )
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": inputs or empty,
        "outputs": outputs or empty,
        "attrs": [{"name": n, "type": t, "value": v} for n, t, v in facts],
    }


class ExecutionTraceObserver:
    """Writes what runs between `start()` and `stop()` to a file.

    As `execution_trace_observer` of `profile` it starts and stops with the recording.

    Example:
        >>> import os
        >>> observer = taeda.profiler.ExecutionTraceObserver()
        >>> observer.register_callback(os.devnull).start()  # or the file's path
        >>> y = taeda.ones(2) + 1
        >>> observer.stop()
        >>> observer.unregister_callback()
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._recorder: _Recorder | None = None
        self._began = 0.0
        self.extra_resources_collection = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """One that writes a new file of the temporary folder, where the environment
        has ENABLE_PYTORCH_EXECUTION_TRACE=1; else None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", suffix=".et.json", delete=False) as file:
            path = file.name
        made = ExecutionTraceObserver()
        extras = os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0")
        made.set_extra_resource_collection(extras == "1")
        return made.register_callback(path)

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Says which file is written; returns this object."""
        self._path = self._path or os.fspath(output_file_path)
        return self

    def unregister_callback(self) -> None:
        """Stops, and forgets the file."""
        self.stop()
        self._path = None

    def cleanup(self) -> None:
        """The same."""
        self.unregister_callback()

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to be written."""
        return self._path is not None

    def is_running(self) -> bool:
        """Whether operators are noted now."""
        return self._recorder is not None

    def start(self) -> None:
        """Begins to note this thread's operators; without a file nothing happens."""
        if self._path is not None and self._recorder is None:
            self._began = monotonic()
            self._recorder = _Recorder()
            self._recorder.__enter__()

    def stop(self) -> None:
        """Writes the file.

        Raises:
            RuntimeError: a dispatch mode was entered since, and is still there.
        """
        recorder = self._recorder
        if recorder is None:
            return
        from taeda.utils._python_dispatch import _get_current_dispatch_mode

        if _get_current_dispatch_mode() is not recorder:
            raise RuntimeError(
                "ExecutionTraceObserver.stop: leave the dispatch modes that were "
                "entered after start() first"
            )
        self._recorder = None
        recorder.__exit__(None, None, None)
        self._write(recorder.nodes)

    def _write(self, nodes: list[dict]) -> None:
        title = "[pytorch|profiler|execution_trace|{}]"
        roots = [
            _node(_PROCESS, title.format("process"), _PROCESS),
            _node(_THREAD, title.format("thread"), _PROCESS),
        ]
        trace = {
            "schema": _SCHEMA,
            "pid": os.getpid(),
            "time": strftime("%Y-%m-%d %H:%M:%S"),
            "start_ts": int(self._began * 1000),
            "nodes": [*roots, *nodes],
            "finish_ts": int(monotonic() * 1000),
        }
        assert self._path is not None
        with open(self._path, "w", encoding="utf-8") as file:
            json.dump(trace, file, indent=1)

    def get_output_file_path(self) -> str | None:
        """The file; None without."""
        return self._path

    def set_extra_resource_collection(self, val: bool) -> None:
        """Whether a folder for kernels' sources is made beside the file; no kernel of
        the CPU has any, so that it stays empty."""
        self.extra_resources_collection = bool(val)
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """That folder; None where it is not wanted, or not there.

        Args:
            can_create: make it.
        """
        if self._path is None or not self.extra_resources_collection:
            return None
        return self.get_resources_dir_for_et_path(self._path, create_dir=can_create)

    @staticmethod
    def get_resources_dir_for_et_path(
        trace_path: str, create_dir: bool = False
    ) -> str | None:
        """The folder of a trace's file; None where it is not there and not made."""
        folder = f"{os.path.splitext(trace_path)[0]}_resources"
        if create_dir:
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError:
                return None
        return folder if os.path.isdir(folder) else None


ExecutionTraceObserver.__module__ = "taeda.profiler"
