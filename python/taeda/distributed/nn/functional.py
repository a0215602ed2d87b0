"""Collectives through which gradients flow.

The backward pass of each is the collective that sends gradients the other way. All
ranks of a group must run it, in one order.
"""

from __future__ import annotations

import taeda
from taeda.autograd import Function

from .. import _collectives as collectives
from .. import group as groups
from .._join import get_rank, get_world_size
from .._types import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _whole(tensor):
    return tensor.detach().contiguous()


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        result = _whole(tensor).clone()
        collectives.broadcast(result, src, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        back = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        if get_rank() != ctx.src:
            back = taeda.zeros_like(back)
        return None, None, back


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        result = _whole(tensor).clone()
        collectives.reduce(result, dst, op=op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        result = _whole(tensor).clone()
        collectives.all_reduce(result, op=op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        mine = _whole(tensor)
        outs = [taeda.empty_like(mine) for _ in range(get_world_size(group))]
        collectives.all_gather(outs, mine, group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx, *grads):
        own = grads[get_rank(ctx.group)]
        parts = [_whole(grad) for grad in grads]
        return None, _ReduceScatter.apply(
            ReduceOp.SUM, ctx.group, taeda.empty_like(own), *parts
        )


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, out, *tensors):
        ctx.group = group
        result = taeda.empty_like(out).contiguous()
        parts = [_whole(tensor) for tensor in tensors]
        collectives.reduce_scatter(result, parts, op=op, group=group)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        mine = _whole(tensor)
        outs = [taeda.zeros_like(mine) for _ in range(get_world_size(group))]
        given = outs if get_rank(group) == dst else None
        collectives.gather(mine, given, group=group, group_dst=dst)
        return tuple(outs)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        result = taeda.zeros_like(_whole(tensors[0]))
        parts = [_whole(tensor) for tensor in tensors]
        given = parts if get_rank(group) == src else None
        collectives.scatter(result, given, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outs, *tensors):
        ctx.group = group
        ctx.shapes = [tensor.shape for tensor in tensors]
        results = [taeda.empty_like(out).contiguous() for out in outs]
        parts = [_whole(tensor) for tensor in tensors]
        collectives.all_to_all(results, parts, group=group)
        return tuple(results)

    @staticmethod
    def backward(ctx, *grads):
        outs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, outs, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, out, output_splits, input_splits, tensor):
        ctx.group, ctx.shape = group, tensor.shape
        ctx.output_splits, ctx.input_splits = output_splits, input_splits
        result = taeda.empty_like(out).contiguous()
        collectives.all_to_all_single(
            result, _whole(tensor), output_splits, input_splits, group=group
        )
        return result

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(ctx.shape)
        back = _AllToAllSingle.apply(
            ctx.group, out, ctx.input_splits, ctx.output_splits, grad
        )
        return None, None, None, None, back


def _group(group):
    return groups.WORLD if group is None else group


def broadcast(tensor, src: int, group=None):
    """A rank's tensor, at every rank."""
    return _Broadcast.apply(src, _group(group), tensor)


def gather(tensor, dst: int = 0, group=None):
    """Every rank's tensor, at one; zeros elsewhere."""
    return _Gather.apply(dst, _group(group), tensor)


def scatter(tensors, src: int = 0, group=None):
    """One of a rank's tensors, at each."""
    return _Scatter.apply(src, _group(group), *tensors)


def reduce(tensor, dst: int, op=ReduceOp.SUM, group=None):
    """A reduction, at one rank."""
    return _Reduce.apply(dst, op, _group(group), tensor)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """A reduction of lists; each rank gets its entry."""
    return _ReduceScatter.apply(op, _group(group), output, *input_list)


def all_gather(tensor, group=None):
    """Every rank's tensor, at every rank."""
    return _AllGather.apply(_group(group), tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Entry r of a list goes to rank r."""
    return _AllToAll.apply(_group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None
):
    """Part r of a tensor goes to rank r."""
    return _AllToAllSingle.apply(
        _group(group), output, output_split_sizes, input_split_sizes, input
    )


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """A reduction, at every rank."""
    return _AllReduce.apply(op, _group(group), tensor)
