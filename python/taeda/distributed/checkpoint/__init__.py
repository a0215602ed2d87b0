"""Checkpoints that many ranks write and any number of ranks reads.

On every rank:
    taeda.distributed.checkpoint.save({"model": model.state_dict()},
                                      checkpoint_id="step100")
"""

from __future__ import annotations

from taeda._lazy import attributes

# The modules and what is public of each.
_MODULES = {
    "api": "CheckpointException",
    "default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "filesystem": "FileSystemReader FileSystemWriter",
    "hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "metadata": "BytesStorageMetadata ChunkStorageMetadata Metadata"
    " TensorStorageMetadata",
    "optimizer": "load_sharded_optimizer_state_dict",
    "planner": "LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem",
    "quantized_hf_storage": "QuantizedHuggingFaceStorageReader",
    "state_dict_loader": "load load_state_dict",
    "state_dict_saver": "async_save save save_state_dict",
    "storage": "StorageReader StorageWriter",
}
_PUBLIC = {name: module for module in _MODULES for name in _MODULES[module].split()}
_SUBMODULES = (
    "api default_planner filesystem format_utils hf_storage logger logging_handlers"
    " metadata optimizer planner planner_helpers quantized_hf_storage resharding"
    " staging state_dict state_dict_loader state_dict_saver stateful storage utils"
).split()

__all__ = [*_PUBLIC]
_find = attributes(__name__, _PUBLIC, _SUBMODULES)


def __getattr__(name: str):
    return _find(name)
