"""The choices of sharded data parallelism, as PyTorch names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import taeda
from taeda.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is split over ranks, and for how long parameters are whole.

    FULL_SHARD frees whole parameters after the forward pass and gathers them again;
    SHARD_GRAD_OP keeps them until the backward pass is done with them; NO_SHARD splits
    nothing and averages gradients. The HYBRID ones split within a host (or a row of a
    mesh) and keep copies between them.
    """

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(Enum):
    """When the next unit's parameters are asked for: before or after this one's pass.

    PRE overlaps the most and holds two units' parameters; POST holds one's.
    """

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(Enum):
    """What `state_dict` holds: whole tensors, flat parts of this rank, or shards."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


class OptimStateKeyType(Enum):
    """By what an optimizer's state dict names its parameters."""

    PARAM_NAME = 1
    PARAM_ID = 2


@dataclass
class MixedPrecision:
    """The dtypes of computation; what optimizers see keeps its own.

    Args:
        param_dtype: of whole parameters and of inputs.
        reduce_dtype: in which gradients are added over ranks; `param_dtype` if None.
        buffer_dtype: of buffers.
        keep_low_precision_grads: leave gradients in `reduce_dtype`.
        cast_forward_inputs: cast the inputs of units below the outermost as well.
        cast_root_forward_inputs: cast those of the outermost.
        _module_classes_to_ignore: classes that an auto-wrap policy leaves in their own
            precision, each in a unit of its own.
    """

    param_dtype: taeda.dtype | None = None
    reduce_dtype: taeda.dtype | None = None
    buffer_dtype: taeda.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Whether shards and their gradients lie in the host's memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Of a model's state dict: whether its tensors are moved to the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors; with `rank0_only` other ranks get an empty dict."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """This rank's flat parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Shards; DTensors where the wrapper was given a mesh."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Of an optimizer's state dict: whether its tensors are moved to the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Whole tensors; with `rank0_only` other ranks get an empty dict."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """This rank's parts."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Shards; DTensors where the wrapper was given a mesh."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """A type of state dict with its two configurations."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
