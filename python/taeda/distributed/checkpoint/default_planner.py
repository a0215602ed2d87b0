"""The planners that `save` and `load` use: flat names, no box written twice."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pickle import UnpicklingError
from typing import Any

import taeda

from . import _plan_cache
from . import metadata as kinds
from ._nested_dict import flatten_state_dict, set_element
from .planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from .planner_helpers import local_tensor, narrow, read_items, takes_part, write_items
from .resharding import faults

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Writes every box once, at the rank that has least to write among those with it.

    Args:
        flatten_state_dict (bool): nested dictionaries become flat names.
        flatten_sharded_tensors (bool): accepted; there are no nested sharded tensors.
        dedup_replicated_tensors: deprecated, without effect.
        dedup_save_to_lowest_rank (bool): what several ranks have, the first writes.
        enable_plan_caching (bool): plans that do not change from one save to the next
            are not sent again.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        if dedup_replicated_tensors is not None:
            import warnings

            warnings.warn(
                "DefaultSavePlanner: dedup_replicated_tensors is deprecated and has no "
                "effect",
                stacklevel=2,
            )
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict = {}
        cached = type(self).__qualname__ if enable_plan_caching else None
        self._cache = _plan_cache.of(cached) if cached else None

    def set_up_planner(
        self,
        state_dict: kinds.STATE_DICT_TYPE,
        storage_meta: kinds.StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        self.is_coordinator, self.state_dict = is_coordinator, state_dict
        if self.flatten_state_dict:
            self.state_dict, self.mappings = flatten_state_dict(state_dict)

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = replace(plan, planner_data=self.mappings)
        self.plan = plan
        return self._cache.to_send(plan) if self._cache else plan

    def create_global_plan(
        self, all_plans: list[SavePlan]
    ) -> tuple[list[SavePlan], kinds.Metadata]:
        if self._cache is None:
            self.global_plan, self.metadata = self._decide(all_plans)
            return self.global_plan, self.metadata
        answers, self.metadata = self._cache.decide(all_plans, self._decide)
        self.global_plan = self._cache.decided
        return answers, self.metadata

    def _decide(
        self, all_plans: list[SavePlan]
    ) -> tuple[list[SavePlan], kinds.Metadata]:
        once = _without_doubles(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(once)
        if self.flatten_state_dict:
            # The first rank's path wins where ranks differ.
            paths: dict = {}
            for plan in reversed(plans):
                paths.update(plan.planner_data)
            metadata = replace(metadata, planner_data=paths)
        wrong = _faults(metadata, complete=len(plans) > 1)
        if wrong:
            raise ValueError(f"Failed to validate global plan: {wrong[:500]}")
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = self._cache.to_use(new_plan) if self._cache else new_plan
        return self.plan

    def resolve_data(self, write_item: WriteItem) -> taeda.Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: kinds.MetadataIndex) -> Any:
        """The value, or the tensor of a box, that an index names."""
        return _find(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The value in the form in which it is written: objects as bytes."""
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        stream = io.BytesIO()
        taeda.save(object, stream)
        return stream


class DefaultLoadPlanner(LoadPlanner):
    """Reads into the tensors of a state dict and puts objects in their place.

    Args:
        flatten_state_dict (bool): nested dictionaries have flat names in the file.
        flatten_sharded_tensors (bool): accepted; there are no nested sharded tensors.
        allow_partial_load (bool): names that the checkpoint lacks keep their values.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.flatten_state_dict = flatten_state_dict
        self.original_state_dict: kinds.STATE_DICT_TYPE = {}
        self.mappings: dict = {}

    def set_up_planner(
        self,
        state_dict: kinds.STATE_DICT_TYPE,
        metadata: kinds.Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        _materialize(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata = state_dict, metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        if self.flatten_state_dict:
            self._follow_old_names(self.metadata.state_dict_metadata)
        strict = not self.allow_partial_load
        return create_default_local_load_plan(self.state_dict, self.metadata, strict)

    def _follow_old_names(self, stored: Mapping) -> None:
        """Flattens by the rules of PyTorch 2.3 if only these find what is stored."""
        left = stored.keys() - self.state_dict.keys()
        if not left:
            return
        flat, paths = flatten_state_dict(self.original_state_dict, old=True)
        if left & flat.keys():
            self.state_dict, self.mappings = flat, paths

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.dest_index.fqn
        try:
            found = taeda.load(value)
        except UnpicklingError as error:
            raise UnpicklingError(
                f"{name}: {error} (of a checkpoint that you trust wholly, with the "
                "environment's TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1)"
            ) from error
        self._put(name, found)

    def _put(self, name: str, value: Any) -> None:
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], value)
        else:
            self.state_dict[name] = value

    def resolve_tensor(self, read_item: ReadItem) -> taeda.Tensor:
        found = self.lookup_tensor(read_item.dest_index)
        return self.transform_tensor(read_item, found)

    def commit_tensor(self, read_item: ReadItem, tensor: taeda.Tensor) -> None:
        pass

    def lookup_tensor(self, index: kinds.MetadataIndex) -> taeda.Tensor:
        """The tensor of the box that an index names."""
        return _find(self.state_dict, index)

    def transform_tensor(
        self, read_item: ReadItem, tensor: taeda.Tensor
    ) -> taeda.Tensor:
        """The part of it that an item fills."""
        return narrow(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Makes the state dict out of what is stored; it must be given an empty one.

    Args:
        keys (set of str): names, or parts of paths joined by dots; None means all.
    """

    def __init__(self, keys: set[str] | None = None, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys

    def _wanted(self, name: str, path: tuple) -> bool:
        if self.keys is None or name in self.keys:
            return True
        starts = (".".join(map(str, path[: n + 1])) for n in range(len(path)))
        return any(start in self.keys for start in starts)

    def set_up_planner(
        self,
        state_dict: kinds.STATE_DICT_TYPE,
        metadata: kinds.Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        assert metadata is not None
        if state_dict:
            raise AssertionError("the state dict must be empty")
        paths = metadata.planner_data or {}
        for name, entry in metadata.state_dict_metadata.items():
            path = paths.get(name, (name,))
            if not self._wanted(name, path):
                continue
            value: Any = entry
            if isinstance(entry, kinds.TensorStorageMetadata):
                value = taeda.empty(entry.size, dtype=entry.properties.dtype)
            set_element(state_dict, path, value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def _find(state_dict: Mapping, index: kinds.MetadataIndex) -> Any:
    """What an index names in a flat state dict.

    Raises:
        ValueError: nothing.
    """
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, taeda.Tensor) or hasattr(value, "__get_tensor_shard__"):
        return local_tensor(value, index)
    if index.offset is not None:
        raise ValueError(f"{index.fqn} is no tensor, it has nothing at {index.offset}")
    return value


def _materialize(state_dict: kinds.STATE_DICT_TYPE) -> None:
    """Gives tensors on "meta" memory, so that they can be loaded into."""
    from .utils import default_device, map_tensors

    def real(tensor):
        if tensor.device.type != "meta":
            return tensor
        if hasattr(tensor, "to_local"):
            return taeda.empty_like(tensor, device=default_device())
        made = taeda.empty_like(tensor, device=default_device())
        return type(tensor)(made) if isinstance(tensor, taeda.nn.Parameter) else made

    map_tensors(state_dict, real, in_place=True)


def create_default_local_save_plan(
    state_dict: Mapping, is_coordinator: bool
) -> SavePlan:
    """What this rank has of a flat state dict."""
    items = []
    for name, value in state_dict.items():
        if takes_part(value):
            items += write_items(name, value)
    return SavePlan(items)


def _without_doubles(plans: list[SavePlan], to_first: bool) -> list[SavePlan]:
    """Every item at one rank only: the first, or that with fewest bytes so far."""
    owners: dict[kinds.MetadataIndex, list[int]] = {}
    weight: dict[kinds.MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(rank)
            weight[item.index] = item.tensor_storage_size() or 1
    load = [0] * len(plans)
    writer = {}
    for index, ranks in owners.items():
        chosen = ranks[0] if to_first else min(ranks, key=load.__getitem__)
        load[chosen] += weight[index]
        writer[index] = chosen
    return [
        replace(plan, items=[i for i in plan.items if writer[i.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], kinds.Metadata]:
    """The metadata of all items, which must not have doubles.

    Args:
        rewrite_index_hints (bool): indices tell the place in the list of boxes.
    """
    stored: dict = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name, data = item.index.fqn, item.tensor_data
            if item.type != WriteItemType.SHARD and name in stored:
                raise AssertionError(f"{name} would be written twice")
            if data is None:
                stored[name] = kinds.BytesStorageMetadata()
                items.append(item)
                continue
            fresh = kinds.TensorStorageMetadata(data.properties, data.size, [])
            boxes = stored.setdefault(name, fresh).chunks
            if rewrite_index_hints:
                index = kinds.MetadataIndex(name, item.index.offset, len(boxes))
                item = replace(item, index=index)
            boxes.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, kinds.Metadata(stored)


def _faults(metadata: kinds.Metadata, complete: bool) -> str:
    """What is wrong with the boxes of a checkpoint."""
    found = []
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, kinds.TensorStorageMetadata) and len(entry.size):
            wrong = faults(entry.size, entry.chunks, complete)
            found += [f"key:{name} has {text}" for text in wrong]
    return "; ".join(found)


def create_default_local_load_plan(
    state_dict: Mapping, metadata: kinds.Metadata, strict: bool = True
) -> LoadPlan:
    """What this rank reads to fill a flat state dict.

    Args:
        strict (bool): a name that the checkpoint lacks is an error.

    Raises:
        RuntimeError: a name is missing. ValueError: sizes differ.
    """
    items = []
    for name, value in state_dict.items():
        stored = metadata.state_dict_metadata.get(name)
        if stored is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        tensor = isinstance(stored, kinds.TensorStorageMetadata)
        if tensor and hasattr(value, "size") and stored.size != value.size():
            raise ValueError(
                f"Size mismatch between saved {stored.size} and current: "
                f"{value.size()} for {name}"
            )
        if takes_part(value):
            items += read_items(name, stored, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: each rank reads what it needs."""
    return all_plans
