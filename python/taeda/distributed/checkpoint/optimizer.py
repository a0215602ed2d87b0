"""Loading an optimizer's state that was spread over ranks."""

from __future__ import annotations

from typing import Any

import taeda
import taeda.distributed as dist

from ._boxes import is_spread
from ._nested_dict import unflatten_state_dict
from .metadata import STATE_DICT_TYPE, TensorStorageMetadata
from .state_dict_loader import _load
from .utils import Team, default_device

__all__ = ["load_sharded_optimizer_state_dict"]


def load_sharded_optimizer_state_dict(
    model_state_dict, optimizer_key, storage_reader, planner=None
) -> STATE_DICT_TYPE:
    """Reads an optimizer's state, laid out as the parameters that it belongs to.

    Args:
        model_state_dict (dict): name -> parameter, of which DTensors say the layout.
            What belongs to none is read whole.
        optimizer_key (str): the name under which the state was saved.
        storage_reader: of the checkpoint. planner: as of `load`.

    Returns:
        {optimizer_key: state}.
    """
    metadata = storage_reader.read_metadata()
    paths = metadata.planner_data or {}
    flat: dict[str, Any] = {}
    for name, entry in metadata.state_dict_metadata.items():
        path = paths.get(name, (name,))
        if path[0] != optimizer_key:
            continue
        if isinstance(entry, TensorStorageMetadata):
            like = model_state_dict.get(str(path[2])) if len(path) > 2 else None
            flat[name] = _room(entry, like)
        else:
            flat[name] = None
    _load(flat, storage_reader, Team(None, not dist.is_initialized()), planner)
    return unflatten_state_dict(flat, {name: paths.get(name, (name,)) for name in flat})


def _room(entry: TensorStorageMetadata, like: Any) -> Any:
    """Memory for a tensor, in the layout of a parameter of the same size."""
    dtype = entry.properties.dtype
    if is_spread(like) and tuple(like.shape) == tuple(entry.size):
        return taeda.empty_like(like, dtype=dtype)
    return taeda.empty(entry.size, dtype=dtype, device=default_device())
