"""Operators that are more than a call on local tensors."""

from __future__ import annotations

import taeda
from taeda import _C

from .. import _collectives as collectives
from .._types import ReduceOp
from ._patterns import REPLICATE
from ._redistribute import moved
from .placement_types import _MaskPartial

Tensor = taeda.Tensor


def whole_of(tensor) -> Tensor:
    """The whole of a distributed tensor, at every rank."""
    spec = tensor._spec
    return moved(tensor._local_tensor, spec, (REPLICATE,) * spec.mesh.ndim)


def _number(func, args, kwargs):
    """This rank's own number, as PyTorch's: `full_tensor()` first gives the whole's."""
    return args[0]._local_tensor.item()


def _equal(func, args, kwargs):
    """Whether all parts are equal at all ranks."""
    one, other = args
    if not isinstance(one, type(other)) or one.shape != other.shape:
        return False
    mesh = one._spec.mesh
    placements = one._spec.placements
    if any(p.is_partial() for p in (*placements, *other._spec.placements)):
        return bool(taeda.equal(whole_of(one), whole_of(other)))
    there = moved(other._local_tensor, other._spec, placements)
    same = taeda.tensor([int(taeda.equal(one._local_tensor, there))])
    if mesh.get_coordinate() is not None:
        for dim in range(mesh.ndim):
            collectives.all_reduce(same, ReduceOp.MIN, mesh.get_group(dim))
    return bool(same.item())


def _is_same_size(func, args, kwargs):
    return tuple(args[0].shape) == tuple(args[1].shape)


def _as_strided(func, args, kwargs):
    tensor, size, stride = args[0], args[1], args[2]
    if tuple(size) == tuple(tensor.shape) and tuple(stride) == tensor.stride():
        return taeda.ops.aten.alias.default(tensor)
    raise RuntimeError("as_strided not supported with DTensor")


def _set_data(func, args, kwargs):
    raise RuntimeError(f"{func}: not supported with DTensor")


HANDLERS = {
    "aten::_local_scalar_dense": _number,
    "aten::equal": _equal,
    "aten::is_same_size": _is_same_size,
    "aten::as_strided": _as_strided,
    "aten::set_.source_Tensor": _set_data,
}


def masked_lookup(func, values: dict, given: dict, plan):
    """Rows of this rank's part of a table, and zeros for rows of other ranks."""
    placement: _MaskPartial = plan.mask
    spec = values["weight"]._spec
    from ._layout import compute_local_shape_and_global_offset

    table = given["weight"]
    wanted = plan.moves[0] or spec.placements
    _, offset = compute_local_shape_and_global_offset(spec.shape, spec.mesh, wanted)
    first, rows = offset[placement.offset_dim], table.shape[placement.offset_dim]
    indices = given["indices"]
    is_absent = (indices < first) | (indices >= first + rows)
    given["indices"] = (indices - first).masked_fill(is_absent, 0)
    if rows == 0:
        shape = (*indices.shape, *table.shape[1:])
        return table.new_zeros(shape)
    found = _C._op_call(func._entry, tuple(given.values()))
    return found.masked_fill(is_absent.unsqueeze(-1), 0)
