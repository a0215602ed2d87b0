"""Tensors whose parts lie at the ranks of a mesh."""

from __future__ import annotations

from taeda._io.names import trust_ours
from taeda._lazy import attributes

from ..device_mesh import DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from ._api import DTensor, _rebuilt, distribute_tensor
from ._dtensor_spec import DTensorSpec, TensorMeta
from .placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _strided_shard,
    _StridedShard,
)

# What files of distributed tensors are made of, for `load` of weights only.
trust_ours(
    [
        DTensor,
        DTensorSpec,
        DeviceMesh,
        Partial,
        Replicate,
        Shard,
        TensorMeta,
        _StridedShard,
        _rebuilt,
        _strided_shard,
    ]
)

_PUBLIC = {
    "distribute_module": "_modules",
    "empty": "_factories",
    "full": "_factories",
    "ones": "_factories",
    "rand": "_factories",
    "randn": "_factories",
    "zeros": "_factories",
}

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]
_find = attributes(
    __name__,
    _PUBLIC,
    ("debug", "device_mesh", "experimental", "parallel", "placement_types"),
)


def __getattr__(name: str):
    return _find(name)
