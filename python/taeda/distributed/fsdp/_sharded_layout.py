"""Each parameter cut along one of its dimensions: DTensors at the optimizer."""

from __future__ import annotations

from math import prod

import taeda
from taeda.distributed.tensor import DTensor, Replicate, Shard
from taeda.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from taeda.distributed.tensor.placement_types import _StridedShard

from ._layout import Layout

__all__ = ["ShardedLayout"]


class _Cut:
    """How one parameter is cut.

    Attributes:
        dim: along which.
        spec: of the DTensor that optimizers see.
        whole: shape of what one rank computes with.
        inner: the spec of what one rank computes with, where that is a DTensor.
        outer: dimensions of its mesh that are data parallel, whose sums are ours.
        rows: of each rank's part, all but the last ones'.
        before, after: elements of the dimensions around `dim`.
        chunk: elements of a rank's part with padding.
    """

    __slots__ = (
        "after", "before", "chunk", "dim", "inner", "outer", "rows", "spec", "whole",
    )  # fmt: skip

    def __init__(self, slot, dim: int, mesh, world: int, dims) -> None:
        self.inner = getattr(slot.parameter, "_spec", None)
        whole = slot.parameter if self.inner is None else slot.parameter._local_tensor
        self.whole, self.dim = tuple(whole.shape), dim
        size = self.whole[dim]
        if dim and size % world:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: "
                f"{slot.shape} (world size: {world})"
            )
        self.rows = -(-size // world)
        self.before, self.after = prod(self.whole[:dim]), prod(self.whole[dim + 1 :])
        self.chunk = self.before * self.rows * self.after
        self.outer: list[int] = []
        self.spec = self._make_spec(slot, mesh, dims)

    def _make_spec(self, slot, mesh, dims):
        parameter, inner = slot.parameter, self.inner
        if dims is not None:
            mesh, placements = self._within(slot, dims)
        else:
            outer = [Replicate()] * (mesh.ndim - 1)
            if inner is None:
                placements = (*outer, Shard(self.dim))
            else:
                mine = self._shard(range(inner.mesh.ndim))
                placements = (*outer, mine, *inner.placements)
                mesh = _joined(mesh, inner.mesh)
        shape = tuple(parameter.shape)
        stride, step = [], 1
        for size in reversed(shape):
            stride.append(step)
            step *= max(size, 1)
        meta = TensorMeta(taeda.Size(shape), tuple(reversed(stride)), parameter.dtype)
        return DTensorSpec(mesh, placements, meta)

    def _shard(self, places):
        """Our placement, outside of what dimensions of the inner mesh cut."""
        factor = 1
        for place in places:
            if self.inner.placements[place].is_shard(self.dim):
                factor *= self.inner.mesh.size(place)
        if factor == 1:
            return Shard(self.dim)
        return _StridedShard(self.dim, split_factor=factor)

    def _within(self, slot, dims):
        """(mesh, placements) of a parameter that is on the whole mesh already."""
        if self.inner is None:
            raise ValueError(
                "When dp_mesh_dims is provided, all parameters must be DTensors on the "
                "full SPMD mesh (e.g. via distribute_module). Got plain tensor for "
                f"parameter '{slot.name}'."
            )
        mesh, placements = self.inner.mesh, list(self.inner.placements)
        shards = [mesh.mesh_dim_names.index(name) for name in dims.shard_names]
        copies = [mesh.mesh_dim_names.index(name) for name in dims.replicate_names]
        self.outer = shards + copies
        for place in self.outer:
            if not placements[place].is_replicate():
                raise ValueError(
                    "Expected Replicate() on DP dim "
                    f"'{mesh.mesh_dim_names[place]}' (index {place}) but got "
                    f"{placements[place]}"
                )
        count = prod(mesh.size(place) for place in shards)
        if len(shards) > 1 and self.whole[self.dim] % count:
            raise NotImplementedError(
                f"fully_shard: {slot.name} of shape {tuple(self.whole)} is not "
                f"divisible over the {count} ranks of {dims.shard_names}"
            )
        for place in shards:
            inside = [p for p in range(place + 1, mesh.ndim) if p not in self.outer]
            placements[place] = self._shard(inside)
        return mesh, tuple(placements)

    def local_rows(self, rank: int) -> int:
        """How many rows a rank has."""
        return min(max(self.whole[self.dim] - rank * self.rows, 0), self.rows)

    def local_shape(self, rank: int) -> list[int]:
        """Of a rank's part."""
        shape = list(self.whole)
        shape[self.dim] = self.local_rows(rank)
        return shape


def _joined(mesh, inner):
    """The mesh with the dimensions of both, which are parts of one."""
    names = (*(mesh.mesh_dim_names or ()), *(inner.mesh_dim_names or ()))
    root = mesh._get_root_mesh()
    if root != inner._get_root_mesh() or len(names) != mesh.ndim + inner.ndim:
        raise ValueError(
            "FSDP requires the DP and model parallel TP/EP mesh to have the same "
            "parent mesh but got: \n"
            f"DP's global mesh: {root}\nTP/EP's global mesh: {inner._get_root_mesh()}"
        )
    return root[names]


class ShardedLayout(Layout):
    """Parameters cut one by one; a row holds a rank's parts behind each other.

    Args:
        slots, rank, world: as for `Layout`.
        mesh: of one dimension, or of two: copies and parts.
        dims: along which each parameter is cut.
        device: of this rank's parts.
        mesh_dims: which dimensions of the parameters' own mesh `mesh` stands for.
    """

    def __init__(self, slots, rank, world, mesh, dims, device, mesh_dims) -> None:
        super().__init__(slots, rank, world)
        self.cuts = [
            _Cut(slot, dim, mesh, world, mesh_dims)
            for slot, dim in zip(slots, dims, strict=True)
        ]
        self.parameters = []
        with taeda.no_grad():
            for slot, cut in zip(slots, self.cuts, strict=True):
                given = slot.parameter
                whole = given.detach() if cut.inner is None else given._local_tensor
                start = min(rank * cut.rows, cut.whole[cut.dim])
                local = whole.narrow(cut.dim, start, cut.local_rows(rank))
                home = taeda.device("meta") if whole.is_meta else device
                local = local.to(home, copy=True).contiguous()
                if local.data_ptr() == whole.data_ptr() and local.numel():
                    local = local.clone()
                slot.parameter = _as_parameter(local, cut.spec, given)
                self.parameters.append(slot.parameter)
        self.sharded()

    def sharded(self) -> None:
        for slot, parameter in zip(self.slots, self.parameters, strict=True):
            slot.put(parameter)

    def refresh(self) -> None:
        """Takes over parameters that were registered in place of ours."""
        for number, slot in enumerate(self.slots):
            now = slot.registered()
            if now is not self.parameters[number]:
                if not isinstance(now, DTensor):
                    raise RuntimeError(
                        f"FSDP: parameter {slot.name!r} was replaced by a "
                        f"{type(now).__name__}; expected a DTensor"
                    )
                self.parameters[number] = now

    def seen(self):
        return self.parameters

    def trainable(self):
        return [p.requires_grad for p in self.parameters]

    def stored(self):
        local = self.parameters[0]._local_tensor
        return local.dtype, local.device

    def as_leaf(self, number, whole):
        inner, flag = self.cuts[number].inner, self.parameters[number].requires_grad
        if inner is not None:
            meta = inner.tensor_meta
            meta = TensorMeta(meta.shape, meta.stride, whole.dtype)
            spec = DTensorSpec(inner.mesh, inner.placements, meta)
            return _parameter(whole, spec, flag)
        return taeda.nn.Parameter(whole, requires_grad=flag)

    def local_gradient(self, number, gradient):
        cut = self.cuts[number]
        if cut.inner is None:
            return gradient
        wanted = list(cut.inner.placements)
        for place in cut.outer:
            wanted[place] = gradient.placements[place]
        if gradient.placements != tuple(wanted):
            gradient = gradient.redistribute(placements=wanted)
        return gradient._local_tensor

    # Rows.

    def row(self):
        self.refresh()
        first = self.parameters[0]._local_tensor
        if first.is_meta:
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before "
                f"training, but {self.slots[0].name!r} is still on the meta device; "
                "call module.to_empty(device) and give them values"
            )
        size = sum(cut.chunk for cut in self.cuts)
        row, at = first.new_empty(size), 0
        for cut, parameter in zip(self.cuts, self.parameters, strict=True):
            local = parameter._local_tensor
            piece = row.narrow(0, at, cut.chunk)
            piece.narrow(0, 0, local.numel()).copy_(local.reshape(-1))
            if local.numel() < cut.chunk:
                piece.narrow(0, local.numel(), cut.chunk - local.numel()).zero_()
            at += cut.chunk
        return row

    def make(self, dtype, device):
        buffers, views = [], []
        for cut in self.cuts:
            buffer = taeda.empty(cut.chunk * self.world, dtype=dtype, device=device)
            buffers.append(buffer)
            views.append(buffer.narrow(0, 0, prod(cut.whole)).view(cut.whole))
        return buffers, views

    def target(self, row):
        dtype, device = self._key[0], self._key[1]
        size = sum(cut.chunk for cut in self.cuts) * self.world
        return taeda.empty(size, dtype=dtype, device=device)

    def fill(self, target) -> None:
        rows, at = target.view(self.world, -1), 0
        for cut, buffer in zip(self.cuts, self.buffers, strict=True):
            pieces = rows.narrow(1, at, cut.chunk)
            at += cut.chunk
            shape = cut.before, self.world, cut.rows * cut.after
            if cut.dim == 0:
                buffer.view(self.world, cut.chunk).copy_(pieces)
            else:
                parts = pieces.view(self.world, cut.before, cut.rows * cut.after)
                buffer.view(shape).copy_(parts.transpose(0, 1))

    def pack(self, gradients: dict, dtype):
        cuts = [self.cuts[number] for number in gradients]
        some = next(iter(gradients.values()))
        length = sum(cut.chunk for cut in cuts)
        packed, at = some.new_empty(self.world * length, dtype=dtype), 0
        rows = packed.view(self.world, length)
        for cut, gradient in zip(cuts, gradients.values(), strict=True):
            pieces = rows.narrow(1, at, cut.chunk)
            at += cut.chunk
            if cut.dim:
                shape = cut.before, self.world, cut.rows * cut.after
                parts = pieces.view(self.world, cut.before, cut.rows * cut.after)
                parts.copy_(gradient.reshape(shape).transpose(0, 1))
                continue
            flat = gradient.reshape(-1)
            full = flat.numel() // max(cut.chunk, 1)
            left = flat.numel() - full * cut.chunk
            pieces.narrow(0, 0, full).copy_(
                flat.narrow(0, 0, full * cut.chunk).view(full, cut.chunk)
            )
            if full < self.world:
                pieces.narrow(0, full, self.world - full).zero_()
                pieces[full].narrow(0, 0, left).copy_(
                    flat.narrow(0, full * cut.chunk, left)
                )
        return packed

    def accept(self, row, numbers) -> None:
        at = 0
        for number in numbers:
            cut, parameter = self.cuts[number], self.parameters[number]
            shape = cut.local_shape(self.rank)
            piece = row.narrow(0, at, prod(shape)).view(shape)
            at += cut.chunk
            if parameter.grad is not None:
                parameter.grad._local_tensor.add_(piece)
            else:
                parameter.grad = DTensor._make(piece, parameter._spec)
            for hook in list((parameter._post_accumulate_grad_hooks or {}).values()):
                hook(parameter)


def _parameter(local, spec, requires_grad: bool):
    """What `nn.Parameter` makes of a DTensor, over the very same local tensor."""
    made = DTensor._make(local, spec).requires_grad_(requires_grad)
    made._is_param = True
    return made


def _as_parameter(local, spec, given):
    made = _parameter(local, spec, given.requires_grad)
    kept = given.__dict__.items()
    own = {k: v for k, v in kept if k not in ("_local_tensor", "_spec")}
    made.__dict__.update(own)
    return made
