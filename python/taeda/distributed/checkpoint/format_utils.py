"""A folder of `save` to one file of `taeda.save`, and back.

From the shell: `python -m taeda.distributed.checkpoint.format_utils dcp_to_torch
FOLDER FILE` or `torch_to_dcp FILE FOLDER`.
"""

from __future__ import annotations

import os

import taeda
import taeda.distributed as dist
from taeda.futures import Future

from ._nested_dict import flatten_state_dict
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter, fill
from .metadata import (
    STATE_DICT_TYPE,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, LoadPlan, LoadPlanner
from .planner_helpers import local_boxes, narrow
from .state_dict_loader import _load
from .state_dict_saver import _save
from .storage import StorageReader
from .utils import Team, default_device

__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]


class BroadcastingTorchSaveReader(StorageReader):
    """Reads one file of `taeda.save` at the first rank, which sends it to the others.

    Tensors travel one by one; used with DynamicMetaLoadPlanner, for tensors only.

    Args:
        checkpoint_id: the file. coordinator_rank (int): who reads.

    On every rank:
        dcp.load(state, storage_reader=BroadcastingTorchSaveReader("model.pt"),
                 planner=DynamicMetaLoadPlanner())
    """

    def __init__(
        self,
        checkpoint_id: str | os.PathLike | None = None,
        coordinator_rank: int = 0,
    ) -> None:
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank
        self.is_coordinator = False

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id:
            self.checkpoint_id = checkpoint_id

    def read_metadata(self) -> Metadata:
        """Nothing: the planner describes what it wants."""
        return Metadata({})

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool) -> None:
        if self.checkpoint_id is None:
            raise AssertionError("BroadcastingTorchSaveReader: no file was named")
        self.is_coordinator = is_coordinator
        if is_coordinator and dist.get_rank() != self.coordinator_rank:
            raise AssertionError(
                f"rank {dist.get_rank()} coordinates the load, and rank "
                f"{self.coordinator_rank} should read the file"
            )

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        content: dict = {}
        if self.is_coordinator:
            content = taeda.load(self.checkpoint_id, map_location="cpu")
            if planner.flatten_state_dict:
                content, _ = flatten_state_dict(content)
        for item in plan.items:
            name = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"Non-tensor value identified at {name}: only tensors are read"
                )
            like = planner.state_dict[name]
            if self.is_coordinator:
                whole = content[name].to(default_device()).contiguous()
            else:
                size, device = tuple(like.shape), default_device()
                whole = taeda.empty(size, dtype=like.dtype, device=device)
            dist.broadcast(whole, src=self.coordinator_rank)
            fill(item, narrow(whole, item.storage_offsets, item.lengths), planner)
        done: Future = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Takes the state dict itself for the description of the checkpoint.

    For formats that have none; tensors only.
    """

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        stored = {}
        for name, value in self.state_dict.items():
            if not isinstance(value, taeda.Tensor):
                raise RuntimeError(
                    f"Non-tensor value identified at {name}: only tensors are read"
                )
            properties = TensorProperties(dtype=value.dtype)
            boxes = local_boxes(value)
            stored[name] = TensorStorageMetadata(properties, value.size(), boxes)
        self.metadata = Metadata(stored)


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike
) -> None:
    """Writes what is in a folder of `save` to one file.

    Args:
        dcp_checkpoint_dir: the folder. torch_save_path: the file, which is replaced.

    Raises:
        CheckpointException: the folder has no checkpoint, or a damaged one.

    On one process:
        dcp_to_torch_save("step100", "step100.pt")
    """
    state: STATE_DICT_TYPE = {}
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load(state, reader, Team(None, alone=True), _EmptyStateDictLoadPlanner())
    taeda.save(state, torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike
) -> None:
    """Writes a dictionary in one file of `taeda.save`, or PyTorch's, to a folder.

    The file is read as data: trust other classes in it with
    `taeda.serialization.add_safe_globals`.

    Args:
        torch_save_path: the file. dcp_checkpoint_dir: the folder.

    On one process:
        torch_save_to_dcp("step100.pt", "step100")
    """
    state = taeda.load(torch_save_path, map_location="cpu")
    _save(state, FileSystemWriter(dcp_checkpoint_dir), Team(None, alone=True))


def _main(arguments: list[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("src", help="what is read")
    parser.add_argument("dst", help="what is written")
    args = parser.parse_args(arguments)
    back = args.mode == "dcp_to_torch"
    there = os.path.isdir(args.src) if back else os.path.isfile(args.src)
    if not there:
        parser.error(f"no checkpoint at {args.src}")
    (dcp_to_torch_save if back else torch_save_to_dcp)(args.src, args.dst)


if __name__ == "__main__":
    import sys

    _main(sys.argv[1:])
