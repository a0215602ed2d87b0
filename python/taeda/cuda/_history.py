"""What the allocator of GPU memory did: PyTorch's tools for looking into it."""

from __future__ import annotations

import sys

from taeda.cuda._devices import _driver
from taeda.cuda.memory import _frames, memory_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
) -> None:
    """Keep what is taken and given back, of all GPUs, for `_snapshot`.

    Args:
        enabled: "all" keeps a history; "state" only where blocks were taken; None ends.
        context: None keeps no places of the program; otherwise the places where memory
            was taken.
        stacks: "python" or "all"; frames are those of Python in both.
        max_entries: the most actions that each GPU keeps, the latest.
        device: ignored: all GPUs are recorded.
        clear_history: what was kept before is dropped in any case.

    Raises:
        ValueError: another `enabled`.
        NotImplementedError: `compile_context`, `global_record_annotations` or
            `skip_actions`.
    """
    for name, value in (
        ("compile_context", compile_context),
        ("global_record_annotations", global_record_annotations),
        ("skip_actions", skip_actions),
    ):
        if value:
            raise NotImplementedError(
                f"cuda.memory._record_memory_history: {name} is not there yet"
            )
    if enabled not in ("all", "state", None):
        raise ValueError(
            f"_record_memory_history: expected 'all', 'state' or None, got {enabled!r}"
        )
    most = max_entries if enabled == "all" else 0
    _driver().record_history(most, enabled is not None and context is not None)


def _snapshot(
    device: Any = None, augment_with_fx_traces: bool = False
) -> dict[str, Any]:
    """Segments of all GPUs, what was recorded of each, and the settings.

    Args:
        device: ignored: all GPUs are there.
        augment_with_fx_traces: NotImplementedError where true.

    Returns:
        A dict of `segments` (as `memory_snapshot`), `device_traces` (a list of actions
        for each GPU, oldest first), `allocator_settings` and `external_annotations`.
    """
    if augment_with_fx_traces:
        raise NotImplementedError(
            "cuda.memory._snapshot: augment_with_fx_traces is not there yet"
        )
    functions = _driver()
    traces = functions.history()
    for entries in traces:
        for entry in entries:
            entry["frames"] = _frames(entry.pop("origin"))
    settings = functions.memory_options()
    return {
        "segments": memory_snapshot(),
        "device_traces": traces,
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": settings},
        "external_annotations": [],
    }


def _dump_snapshot(
    filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write `_snapshot()` to a file, for PyTorch's viewer (pytorch.org/memory_viz)."""
    import pickle

    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def _set_allocator_settings(env: str) -> None:
    """Set what PYTORCH_CUDA_ALLOC_CONF sets, from now on.

    Raises:
        RuntimeError: there is no such option.
        ValueError: it has no such value.
        NotImplementedError: it is not there yet.
    """
    _driver().set_memory_options(env)


def _allocation_traceback(data_ptr: int) -> list[dict[str, Any]] | None:
    """Where the program took the block that begins at an address; None for no block."""
    for segment in memory_snapshot():
        for block in segment["blocks"]:
            if block["address"] == data_ptr and block["state"] == "active_allocated":
                return block["frames"] or None
    return None
