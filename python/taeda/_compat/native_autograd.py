"""What libraries ask `torch._C._autograd` for."""

from __future__ import annotations

from taeda import _C
from taeda._boxed import SavedTensor
from taeda.autograd import DeviceType

__all__ = ["DeviceType", "SavedTensor", "kineto_available"]

_push_saved_tensors_default_hooks = _C._push_saved_tensors_hooks
_pop_saved_tensors_default_hooks = _C._pop_saved_tensors_hooks
_get_current_graph_task_keep_graph = _C._current_graph_task_keep_graph


def kineto_available() -> bool:
    """Whether the profiler stands on the library Kineto: it does not."""
    return False


def _unsafe_set_version_counter(tensors: tuple, versions: tuple) -> None:
    """Give tensors, and who shares their counters, other numbers of changes."""
    for tensor, version in zip(tensors, versions, strict=True):
        _C._set_version(tensor, version)


def _saved_tensors_hooks_disable(message: str) -> None:
    """Refuse hooks of saved tensors in this thread, saying `message`."""
    _C._disable_saved_tensors_hooks(message)


def _saved_tensors_hooks_enable() -> None:
    """Allow them again."""
    _C._disable_saved_tensors_hooks(None)


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """What they are refused with; None where they are allowed."""
    message = _C._disable_saved_tensors_hooks(None)
    _C._disable_saved_tensors_hooks(message)
    return message


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether they are allowed."""
    return _saved_tensors_hooks_get_disabled_error_message() is None
