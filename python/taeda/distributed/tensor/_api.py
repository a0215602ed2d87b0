"""`DTensor`, and tensors that become one."""

from __future__ import annotations

import taeda
from taeda.autograd import Function

from .. import _collectives as collectives
from ..device_mesh import DeviceMesh
from . import _dispatch, _dtensor_spec
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._layout import (
    compute_global_tensor_info,
    contiguous_stride,
    meta_of,
    normalized,
)
from ._redistribute import Redistribute
from ._transfers import part
from .placement_types import Partial, Placement, Replicate

__all__ = ["DTensor", "distribute_tensor"]

Tensor = taeda.Tensor


class DTensor(Tensor):
    """A tensor whose parts lie at the ranks of a mesh, used like one on one device.

    Operators compute on the parts and communicate where their result needs it; all
    ranks of the mesh call the same operators in the same order. Made by
    `distribute_tensor`, `DTensor.from_local` and the functions beside it.
    """

    _local_tensor: Tensor
    _spec: DTensorSpec

    @staticmethod
    def __new__(cls, local_tensor: Tensor, spec: DTensorSpec, *, requires_grad: bool):
        made = DTensor._make(local_tensor, spec)
        return made.requires_grad_() if requires_grad else made

    def __init__(self, *args, **kwargs) -> None:
        """A tensor over a local part; use `from_local` or `distribute_tensor`."""

    @staticmethod
    def _make(local: Tensor, spec: DTensorSpec) -> DTensor:
        """A tensor over a local part, which autograd does not know."""
        made = (spec._maker or spec.maker(local.device))()
        made._local_tensor = local
        made._spec = spec
        return made

    __torch_dispatch__ = staticmethod(_dispatch.dispatch)

    # -- what it is -----------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks; cannot be set."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh; cannot be set."""
        return self._spec.placements

    def __repr__(self) -> str:
        spec = self._spec
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={spec.mesh}, "
            f"placements={spec.placements})"
        )

    def __tensor_flatten__(self):
        spec = self._spec
        return ["_local_tensor"], (spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, flatten_spec, outer_size, outer_stride):
        spec, requires_grad = flatten_spec
        meta = TensorMeta(
            taeda.Size(outer_size), tuple(outer_stride), spec.tensor_meta.dtype
        )
        made = DTensorSpec(spec.mesh, spec.placements, meta)
        local = inner_tensors["_local_tensor"]
        return DTensor(local, made, requires_grad=requires_grad)

    def __reduce_ex__(self, proto):
        state = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("_local_tensor", "_spec", "grad")
        }
        return _rebuilt, (self._local_tensor, self._spec, self.requires_grad, state)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support "
                "the deepcopy protocol at the moment."
            )
        from copy import deepcopy

        local = deepcopy(self._local_tensor.detach(), memo)
        made = DTensor(local, self._spec, requires_grad=self.requires_grad)
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name not in ("_local_tensor", "_spec"):
                setattr(made, name, deepcopy(value, memo))
        if self.grad is not None:
            made.grad = deepcopy(self.grad, memo)
        return made

    # -- from and to parts ----------------------------------------------------

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements=None,
        *,
        run_check: bool = False,
        shape=None,
        stride=None,
        grad_placements=None,
    ) -> DTensor:
        """The tensor of which every rank gives its part.

        Args:
            local_tensor: this rank's part, on the mesh's device or moved to it.
            device_mesh: the ranks; by default the mesh that was entered by `with`.
            placements: one for each dimension of the mesh; by default replicas.
            run_check: compares shapes and dtypes of all ranks, and sends the first
                rank's values to the others where the tensor is a replica.
            shape, stride: of the whole; needed where parts differ in length.
            grad_placements: how the gradient of `local_tensor` is placed. By default
                as given, and whole where values are partial.

        Raises:
            RuntimeError: a `DTensor` as part, or only one of shape and stride.
            ValueError: partial values of several kinds.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                "the local_tensor argument only accepts torch.Tensor but got "
                f"{type(local_tensor)} value."
            )
        mesh = device_mesh or _entered_mesh()
        if local_tensor.device.type != mesh.device_type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        if placements is None:
            placements = [Replicate()] * mesh.ndim
        placements = normalized(placements, local_tensor.dim())
        _check_partial(placements)
        grads = _optional_tuple(grad_placements)
        return _FromLocal.apply(
            local_tensor, mesh, placements, run_check, shape, stride, grads
        )

    def to_local(self, *, grad_placements=None) -> Tensor:
        """This rank's part.

        Args:
            grad_placements: how the gradient of the part is placed. By default as the
                tensor is, and whole where values are partial.
        """
        part = self._local_tensor
        if taeda.is_grad_enabled():
            part = _ToLocal.apply(self, _optional_tuple(grad_placements))
        if not self.__dict__.get("_is_param") or isinstance(part, taeda.nn.Parameter):
            return part
        # The part of a parameter is one too; the mark belongs to a tensor of its own.
        part = part.view_as(part) if part is self._local_tensor else part
        part._is_param = True
        return part

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements=None,
        *,
        async_op: bool = False,
        forward_dtype=None,
        backward_dtype=None,
    ) -> DTensor:
        """The same tensor, placed otherwise; with gradients.

        Args:
            device_mesh: the tensor's own mesh, or None.
            placements: one for each dimension of the mesh.
            async_op: accepted; collectives end before it returns.
            forward_dtype: of what is sent, and of the result.
            backward_dtype: of what is sent of the gradient.

        Raises:
            RuntimeError: without placements, or to partial values.
            NotImplementedError: another mesh.
        """
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placements = normalized(placements, self.dim())
        for was, placement in zip(self.placements, placements, strict=False):
            if placement.is_partial() and was != placement:
                raise RuntimeError(
                    f"Can not redistribute from {was} to {placement}, "
                    "redistributing to Partial is for internal use only!"
                )
        if mesh is not self.device_mesh and mesh != self.device_mesh:
            raise NotImplementedError(
                "redistribute: from one mesh to another is not supported"
            )
        if len(placements) != mesh.ndim:
            raise ValueError(
                f"redistribute: expected {mesh.ndim} placements, one for each dimension"
                f" of the mesh, got {placements}"
            )
        return Redistribute.apply(self, placements, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements=None) -> Tensor:
        """The whole, at every rank.

        Args:
            grad_placements: how the gradient of the whole is placed; by default as
                replicas.
        """
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return _ToLocal.apply(whole, _optional_tuple(grad_placements))

    # -- checkpoints ----------------------------------------------------------

    def _refuse_partial(self) -> None:
        if any(p.is_partial() for p in self.placements):
            raise ValueError(
                "Any checkpointing related operations are not supported for "
                "DTensor with partial placements!"
            )


_dispatch._kinds.append(DTensor)
taeda._C._know_calls_of(DTensor)
_dtensor_spec._wrapper_class.append(DTensor)


def _rebuilt(local: Tensor, spec: DTensorSpec, requires_grad: bool, state: dict):
    """Makes a tensor again of what its pickle holds."""
    made = DTensor(local, spec, requires_grad=requires_grad)
    made.__dict__.update(state)
    return made


def _optional_tuple(placements) -> tuple | None:
    return None if placements is None else tuple(placements)


def _entered_mesh() -> DeviceMesh:
    if not DeviceMesh._entered:
        raise RuntimeError("No device mesh is currently active!")
    return DeviceMesh._entered[-1]


def _check_partial(placements) -> None:
    kinds = {p.reduce_op for p in placements if isinstance(p, Partial)}
    if len(kinds) > 1:
        raise ValueError(
            "Mixed Partial reduce types are not supported: all Partial placements must "
            f"use the same reduce_op, got {sorted(kinds)}"
        )


def _whole_where_partial(placements) -> tuple:
    return tuple(Replicate() if p.is_partial() else p for p in placements)


class _ToLocal(Function):
    """The part; its gradient is the tensor's, of which every rank gives its part."""

    @staticmethod
    def forward(ctx, tensor, grad_placements):
        ctx.spec, ctx.grad_placements = tensor._spec, grad_placements
        ctx.set_materialize_grads(False)
        local = tensor._local_tensor
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return None, None
        spec = ctx.spec
        placements = ctx.grad_placements
        if placements is None:
            placements = _whole_where_partial(spec.placements)
        _, stride = compute_global_tensor_info(grad, spec.mesh, placements)
        meta = TensorMeta(spec.shape, tuple(stride), grad.dtype)
        return DTensor._make(grad, DTensorSpec(spec.mesh, placements, meta)), None


class _FromLocal(Function):
    """The tensor of parts; the gradient of a part is this rank's part of it."""

    @staticmethod
    def forward(ctx, local, mesh, placements, run_check, shape, stride, grads):
        ctx.mesh, ctx.placements, ctx.grad_placements = mesh, placements, grads
        ctx.set_materialize_grads(False)
        if bool(shape is not None) != bool(stride is not None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. "
                "Please pass both shape and stride at the same time."
            )
        if shape is None:
            shape, stride = compute_global_tensor_info(local, mesh, placements)
        if mesh.get_coordinate() is None:
            local = local.new_empty(0)
        elif run_check:
            local = _checked(local, mesh, placements)
        meta = TensorMeta(taeda.Size(shape), tuple(stride), local.dtype)
        return DTensor._make(local.view_as(local), DTensorSpec(mesh, placements, meta))

    @staticmethod
    def backward(ctx, grad):
        nothing = (None,) * 6
        if grad is None:
            return (None, *nothing)
        wanted = ctx.grad_placements
        if wanted is None:
            wanted = _whole_where_partial(ctx.placements)
        return (grad.redistribute(placements=wanted).to_local(), *nothing)


def _checked(local: Tensor, mesh: DeviceMesh, placements) -> Tensor:
    """The part, after ranks have compared what they give.

    Raises:
        ValueError: shapes, strides or dtypes differ.
    """
    from .._join import get_world_size
    from .._objects import all_gather_object

    own = (tuple(local.shape), tuple(local.stride()), str(local.dtype))
    found: list = [None] * get_world_size()
    all_gather_object(found, own)
    if any(other != own for other in found):
        raise ValueError(
            "Inconsistent tensor metadata (including shape and stride) across ranks: "
            f"{found}"
        )
    for dim, placement in enumerate(placements):
        if placement.is_replicate():
            local = local.contiguous()
            _broadcast(local, mesh, dim, 0)
    return local


def _broadcast(tensor: Tensor, mesh: DeviceMesh, dim: int, source: int) -> None:
    collectives.broadcast(tensor, group=mesh.get_group(dim), group_src=source)


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements=None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A leaf tensor, cut or copied over the ranks of a mesh.

    Args:
        tensor: the whole, of the same shape and dtype at every rank.
        device_mesh: the ranks; by default the mesh that was entered by `with`.
        placements: one for each dimension of the mesh; by default replicas.
        src_data_rank: whose values count, by place in each dimension of the mesh; None
            takes each rank's own and sends nothing.

    Raises:
        RuntimeError: the tensor is no leaf.
        ValueError: another number of placements than the mesh has dimensions, partial
            values of several kinds, or a `DTensor` that is placed otherwise.

    On every rank:
        distribute_tensor(weight, mesh, [Shard(0)])
    """
    mesh = device_mesh or _entered_mesh()
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found "
            "non-leaf tensor!"
        )
    if tensor.device.type != mesh.device_type and not tensor.is_meta:
        tensor = tensor.to(mesh.device_type)
    if placements is None:
        placements = [Replicate()] * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found "
            f"placements length: {len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    _check_partial(placements)
    placements = normalized(placements, tensor.dim())
    if isinstance(tensor, DTensor):
        return _as_distributed(tensor, mesh, placements)
    for placement in placements:
        if placement.is_shard() and placement.dim >= tensor.dim():
            raise AssertionError(
                f"Sharding dim {placement.dim} greater than tensor ndim {tensor.dim()}"
            )
    local = tensor.detach()
    if mesh.get_coordinate() is None:
        local = local.new_empty(0)
    else:
        for dim, placement in enumerate(placements):
            local = _sent(local, mesh, dim, placement, src_data_rank)
    if not isinstance(tensor, DTensor) and local.data_ptr() == tensor.data_ptr():
        local = local.view_as(local)
    spec = DTensorSpec(mesh, placements, meta_of(tensor))
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def _as_distributed(tensor: DTensor, mesh: DeviceMesh, placements) -> DTensor:
    if tensor.device_mesh != mesh:
        raise ValueError(
            f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} "
            f"to a different device mesh {mesh}."
        )
    if tensor.placements != placements:
        raise ValueError(
            f"Cannot distribute a DTensor with placements {tensor.placements} to a "
            f"different placements {placements}. do you want to call `redistribute` "
            "instead?"
        )
    return tensor


def _sent(local: Tensor, mesh: DeviceMesh, dim: int, placement, source: int | None):
    """This rank's part of what the source has, along one dimension of the mesh."""
    count, index = mesh.size(dim), mesh.get_coordinate()[dim]
    if source is not None and count > 1 and not local.is_meta:
        if placement.is_shard():
            return _scattered(local, mesh, dim, placement, source)
        local = local.clone(memory_format=taeda.contiguous_format)
        _broadcast(local, mesh, dim, source)
    if placement.is_shard():
        return part(local, placement, count, index).clone(
            memory_format=taeda.contiguous_format
        )
    if placement.is_partial():
        return placement._part_of(local, count, index)
    return local


def _scattered(local: Tensor, mesh: DeviceMesh, dim: int, placement, source: int):
    count, index = mesh.size(dim), mesh.get_coordinate()[dim]
    parts = [part(local, placement, count, r) for r in range(count)]
    longest = max(p.shape[placement.dim] for p in parts)
    mine = parts[index].shape[placement.dim]
    shape = list(local.shape)
    shape[placement.dim] = longest
    out = local.new_empty(shape)
    sent = None
    if index == source:
        sent = []
        for piece in parts:
            padded = local.new_zeros(shape)
            padded.narrow(placement.dim, 0, piece.shape[placement.dim]).copy_(piece)
            sent.append(padded)
    collectives.scatter(out, sent, group=mesh.get_group(dim), group_src=source)
    if mine == longest:
        return out
    return out.narrow(placement.dim, 0, mine).contiguous()


def like_contiguous(shape, dtype) -> TensorMeta:
    """Shape, strides without gaps, and dtype."""
    return TensorMeta(taeda.Size(shape), contiguous_stride(shape), dtype)
