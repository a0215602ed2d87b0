"""Sharded data parallelism: each rank holds a part of parameters and their states."""

from __future__ import annotations

from taeda._lazy import attributes

_MODULES = {
    "_flat_param": "FlatParameter",
    "_fsdp_module": "FSDPModule UnshardHandle register_fsdp_forward_method",
    "_fully_shard": "fully_shard share_comm_ctx",
    "_policies": "CPUOffloadPolicy DataParallelMeshDims MixedPrecisionPolicy"
    " OffloadPolicy",
    "api": "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig"
    " LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision"
    " OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig"
    " ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings"
    " StateDictType",
    "fully_sharded_data_parallel": "FullyShardedDataParallel",
}
_PUBLIC = {name: module for module in _MODULES for name in _MODULES[module].split()}

__all__ = [name for name in _PUBLIC if name != "FlatParameter"]
_find = attributes(
    __name__,
    _PUBLIC,
    ("api", "fully_sharded_data_parallel", "sharded_grad_scaler", "wrap"),
)


def __getattr__(name: str):
    return _find(name)
