"""Collectives that return new tensors and leave their inputs as they are.

They return before they end: the result is an `AsyncCollectiveTensor`, whose use waits,
as `wait_tensor` does. Where a program is compiled or traced they are operators of
`taeda.ops._c10d_functional`, which end at once with plain results. Groups are given as
a group, its name, a list of ranks, a mesh of one dimension, or a mesh and a dimension.
"""

from __future__ import annotations

import taeda
from taeda.autograd import Function
from taeda.utils._python_dispatch import _get_current_dispatch_mode

from . import _collectives as collectives
from ._async_tensor import AsyncCollectiveTensor, _Pending
from ._functional_groups import (  # noqa: F401 (also under this module's name)
    _operation,
    _resolve_group,
    _resolve_group_name,
)
from ._observers import observed
from ._process_group import ProcessGroup

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_single_coalesced",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_gather_tensor_inplace",
    "all_reduce",
    "all_reduce_coalesced",
    "all_reduce_inplace",
    "all_to_all_inplace",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_tensor_inplace",
    "wait_tensor",
]


def wait_tensor(tensor):
    """The plain tensor, once the collective that fills it has ended.

    Args:
        tensor: what a collective of this module returned; another is returned as it is.

    Raises:
        DistBackendError: the collective failed.
    """
    if isinstance(tensor, AsyncCollectiveTensor):
        return tensor.trigger_wait()
    return tensor


def _is_traced() -> bool:
    """Whether operators are noted: by the compiler, or by a mode."""
    return taeda.compiler.is_compiling() or _get_current_dispatch_mode() is not None


def _filled(result, work):
    """What a collective that runs fills."""
    if work is None:
        return result
    return AsyncCollectiveTensor(result, _Pending(work))


def all_reduce(self, reduceOp: str, group, tag: str = ""):
    """The reduction of a tensor, at every rank.

    Args:
        self: of the same shape and dtype at every rank.
        reduceOp: "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".
        group: the ranks.
        tag: of a group of listed ranks.
    """
    pg, operation = _resolve_group(group, tag), _operation(reduceOp)
    if _is_traced():
        name = operation.name.lower()
        return taeda.ops._c10d_functional.all_reduce(self, name, pg.group_name)
    result = self.detach().clone(memory_format=taeda.contiguous_format)
    observed("all_reduce", None, result)
    work = collectives.all_reduce(result, operation, pg, async_op=True)
    return _filled(result, work)


def all_reduce_coalesced(self: list, reduceOp: str, group, tag: str = "") -> list:
    """The reductions of several tensors."""
    pg = _resolve_group(group, tag)
    return [all_reduce(tensor, reduceOp, pg) for tensor in self]


def broadcast(self, src: int, group, tag: str = ""):
    """A rank's tensor, at every rank.

    Args:
        self: of the same shape and dtype at every rank.
        src: the source's global rank.
        group: the ranks.
        tag: of a group of listed ranks.
    """
    pg = _resolve_group(group, tag)
    if _is_traced():
        return taeda.ops._c10d_functional.broadcast(self, src, pg.group_name)
    result = self.detach().clone(memory_format=taeda.contiguous_format)
    observed("broadcast", None, result)
    return _filled(result, collectives.broadcast(result, src, pg, async_op=True))


def _gathered(tensor, dim: int, pg: ProcessGroup):
    if _is_traced():
        place = pg.size(), pg.group_name
        out = taeda.ops._c10d_functional.all_gather_into_tensor(tensor, *place)
        return taeda.cat(out.chunk(pg.size()), dim) if dim else out
    whole = wait_tensor(tensor).detach().contiguous()
    shape = (pg.size() * whole.shape[0], *whole.shape[1:])
    out = whole.new_empty(shape)
    observed("all_gather_into_tensor", None, whole)
    work = collectives.all_gather_into_tensor(out, whole, pg, async_op=True)
    out = _filled(out, work)
    return taeda.cat(wait_tensor(out).chunk(pg.size()), dim) if dim else out


def all_gather_tensor(self, gather_dim: int, group, tag: str = ""):
    """Every rank's tensor, joined along a dimension.

    Args:
        self: of the same shape and dtype at every rank.
        gather_dim: along which.
        group: the ranks.
        tag: of a group of listed ranks.
    """
    return _gathered(self, gather_dim % max(self.dim(), 1), _resolve_group(group, tag))


all_gather_single = all_gather_tensor


def all_gather_into_tensor_coalesced(self: list, group, tag: str = "") -> list:
    """Every rank's tensors, each joined along the first dimension."""
    pg = _resolve_group(group, tag)
    return [_gathered(tensor, 0, pg) for tensor in self]


all_gather_single_coalesced = all_gather_into_tensor_coalesced


def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group, tag: str = ""):
    """This rank's part of a reduction, cut along a dimension.

    Args:
        self: of the same shape and dtype at every rank.
        reduceOp: how values are combined.
        scatter_dim: along which it is cut; its size is divisible by the ranks.
        group: the ranks.
        tag: of a group of listed ranks.
    """
    pg = _resolve_group(group, tag)
    dim, count = scatter_dim % self.dim(), pg.size()
    if self.shape[dim] % count != 0:
        raise AssertionError(
            f"input dimension {dim} ({self.shape[dim]}) must be a multiple of "
            f"group_size {count}"
        )
    whole = wait_tensor(self).detach()
    if dim:
        whole = taeda.cat(whole.chunk(count, dim))
    operation = _operation(reduceOp)
    if _is_traced():
        how = operation.name.lower(), count, pg.group_name
        return taeda.ops._c10d_functional.reduce_scatter_tensor(whole, *how)
    whole = whole.contiguous()
    out = whole.new_empty((whole.shape[0] // count, *whole.shape[1:]))
    observed("reduce_scatter_tensor", None, whole)
    work = collectives.reduce_scatter_tensor(out, whole, operation, pg, async_op=True)
    return _filled(out, work)


reduce_scatter_single = reduce_scatter_tensor


def reduce_scatter_tensor_coalesced(
    inputs: list, reduceOp: str, scatter_dim: list[int], group, tag: str = ""
) -> list:
    """This rank's parts of several reductions."""
    pg = _resolve_group(group, tag)
    return [
        reduce_scatter_tensor(tensor, reduceOp, dim, pg)
        for tensor, dim in zip(inputs, scatter_dim, strict=True)
    ]


reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


def all_to_all_single(
    self, output_split_sizes, input_split_sizes, group, tag: str = ""
):
    """The parts of every rank's tensor that are for this rank, joined.

    Args:
        self: split along the first dimension.
        output_split_sizes: rows that come from each rank; equal parts if None.
        input_split_sizes: rows that go to each rank, the same.
        group: the ranks.
        tag: of a group of listed ranks.
    """
    pg = _resolve_group(group, tag)
    if _is_traced():
        equal = [self.shape[0] // pg.size()] * pg.size()
        splits = output_split_sizes or equal, input_split_sizes or equal
        operator = taeda.ops._c10d_functional.all_to_all_single
        return operator(self, *splits, pg.group_name)
    whole = wait_tensor(self).detach().contiguous()
    rows = sum(output_split_sizes) if output_split_sizes else whole.shape[0]
    out = whole.new_empty((rows, *whole.shape[1:]))
    observed("all_to_all_single", None, whole)
    work = collectives.all_to_all_single(
        out, whole, output_split_sizes, input_split_sizes, pg, async_op=True
    )
    return _filled(out, work)


def permute_tensor(self, src_dst: list[int], group, tag: str = ""):
    """The tensor of the rank that sends to this one.

    Args:
        self: of the same shape and dtype at every rank.
        src_dst: for each rank, to whom it sends.
        group: the ranks.
        tag: of a group of listed ranks.
    """
    pg = _resolve_group(group, tag)
    flat, count = self.reshape(-1), pg.size()
    inputs, outputs = [0] * count, [0] * count
    for source, target in enumerate(src_dst):
        if source == pg.rank():
            inputs[target] = flat.numel()
        if target == pg.rank():
            outputs[source] = flat.numel()
    return all_to_all_single(flat, outputs, inputs, pg)


# With gradients. The backward pass is the collective that carries them back.


class _AllGather(Function):
    @staticmethod
    def forward(ctx, tensor, dim, pg):
        ctx.dim, ctx.pg = dim, pg
        return all_gather_tensor(tensor, dim, pg)

    @staticmethod
    def backward(ctx, grad):
        return reduce_scatter_tensor(grad, "sum", ctx.dim, ctx.pg), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, tensor, operation, dim, pg):
        ctx.operation, ctx.dim, ctx.pg = operation, dim, pg
        return reduce_scatter_tensor(tensor, operation, dim, pg)

    @staticmethod
    def backward(ctx, grad):
        whole = all_gather_tensor(grad, ctx.dim, ctx.pg)
        if ctx.operation == "avg":
            whole = whole / ctx.pg.size()
        return whole, None, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, tensor, outputs, inputs, pg):
        ctx.outputs, ctx.inputs, ctx.pg = outputs, inputs, pg
        return all_to_all_single(tensor, outputs, inputs, pg)

    @staticmethod
    def backward(ctx, grad):
        back = all_to_all_single(grad, ctx.inputs, ctx.outputs, ctx.pg)
        return back, None, None, None


def all_gather_tensor_autograd(self, gather_dim: int, group, tag: str = ""):
    """The same as `all_gather_tensor`, with gradients."""
    return _AllGather.apply(self, gather_dim, _resolve_group(group, tag))


all_gather_single_autograd = all_gather_tensor_autograd


def reduce_scatter_tensor_autograd(
    self, reduceOp: str, scatter_dim: int, group, tag: str = ""
):
    """The same as `reduce_scatter_tensor`, with gradients; of "sum" and "avg"."""
    if reduceOp not in ("sum", "avg"):
        raise NotImplementedError(
            f"reduce_scatter_tensor_autograd: the gradient of {reduceOp!r}"
        )
    pg = _resolve_group(group, tag)
    return _ReduceScatter.apply(self, reduceOp, scatter_dim, pg)


reduce_scatter_single_autograd = reduce_scatter_tensor_autograd


def all_to_all_single_autograd(
    self, output_split_sizes, input_split_sizes, group, tag: str = ""
):
    """The same as `all_to_all_single`, with gradients."""
    pg = _resolve_group(group, tag)
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, pg)


# In place, as programs that are compiled call them.


def _sync_only(name: str, async_op: bool) -> None:
    if async_op:
        raise AssertionError(f"Can't remap async version of {name} to functional")


def all_reduce_inplace(
    tensor, op: str = "sum", group=None, async_op: bool = False, tag: str = ""
):
    """Reduces a tensor in place."""
    _sync_only("all_reduce", async_op)
    return tensor.copy_(all_reduce(tensor, op, group, tag))


def all_gather_tensor_inplace(
    output_tensor,
    input_tensor,
    group=None,
    async_op: bool = False,
    tag: str = "",
    gather_dim: int = 0,
):
    """Gathers into a tensor."""
    _sync_only("all_gather_into_tensor", async_op)
    result = all_gather_tensor(input_tensor, gather_dim, group, tag)
    return output_tensor.copy_(result.view(output_tensor.shape))


def reduce_scatter_tensor_inplace(
    output,
    input,
    op: str = "sum",
    group=None,
    async_op: bool = False,
    scatter_dim: int = 0,
    tag: str = "",
):
    """Reduces; the output is this rank's part."""
    _sync_only("reduce_scatter_tensor", async_op)
    return output.copy_(reduce_scatter_tensor(input, op, scatter_dim, group, tag))


def all_to_all_inplace(
    output,
    input,
    output_split_sizes=None,
    input_split_sizes=None,
    group=None,
    async_op: bool = False,
    tag: str = "",
):
    """Exchanges parts into a tensor."""
    _sync_only("all_to_all_single", async_op)
    result = all_to_all_single(input, output_split_sizes, input_split_sizes, group, tag)
    return output.copy_(result)


# Declares the operators, which call the functions above.
from . import _functional_operators  # noqa: E402, F401
