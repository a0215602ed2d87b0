"""Collectives of tensors."""

from __future__ import annotations

from datetime import timedelta

import taeda

from . import _types as types
from ._join import (
    _get_default_group,
    _group_or_default,
    _not_in_group,
    get_group_rank,
)
from ._types import ReduceOp
from ._work import Work
from ._world import Backend, _world

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "supports_complex",
]

Tensor = taeda.Tensor


def _check_tensor(tensor, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"{taeda.__name__}.Tensor\n             but got {type(tensor)} instead."
        )


def _check_tensors(tensors, name: str) -> None:
    if not isinstance(tensors, (list, tuple)) or not all(
        isinstance(t, Tensor) for t in tensors
    ):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"List[{taeda.__name__}.Tensor]\n"
            f"             but got {type(tensors)} instead."
        )


def _check_dtypes(*tensors) -> None:
    """All tensors, some of them in lists, have one dtype."""
    flat = [t for x in tensors for t in (x if isinstance(x, (list, tuple)) else [x])]
    found = list({t.dtype: None for t in flat})
    if len(found) > 1:
        names = " and ".join(map(str, found))
        raise ValueError(f"Invalid usage of tensors with different dtypes: {names}")


def _outside(group, name: str) -> bool:
    """Whether this rank is not in the group, with a warning: nothing is done."""
    if not _not_in_group(group):
        return False
    import warnings

    rank = _world.default_pg.rank() if _world.default_pg else "?"
    warnings.warn(
        f"Running {name} on global rank {rank} which does not belong to the given "
        "group.",
        stacklevel=3,
    )
    return True


def _rank_in_group(group, global_rank, group_rank) -> int:
    """The rank in the group of one that is given in either way."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return int(group_rank)
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, int(global_rank))


def _ended(work: Work | None, async_op: bool) -> Work | None:
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def _set(options, async_op: bool, **values):
    options.asyncOp = async_op
    for name, value in values.items():
        setattr(options, name, value)
    return options


def _reduction(op) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op: expected a ReduceOp, got {op!r}")
    return op


def _plain(tensor):
    """Complex tensors as the real ones that backends know; a view."""
    return taeda.view_as_real(tensor) if tensor.is_complex() else tensor


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether a reduction of complex values has a meaning: sums and averages have."""
    return reduceOp.name in ("SUM", "AVG", "PREMUL_SUM")


def _reducible(tensor, op):
    if not tensor.is_complex():
        return tensor
    if not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    return _plain(tensor)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """Reduces a tensor in place; every rank gets the result.

    Args:
        tensor: of the same shape and dtype at every rank.
        op: how values are combined.
        group: the ranks; all by default.
        async_op: return a work that is waited for.

    Returns:
        The work, or None.

    Raises:
        DistBackendError: a rank is lost, late, or called something else.
    """
    _check_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    group, op = _group_or_default(group), _reduction(op)
    options = _set(types.AllreduceOptions(), async_op, reduceOp=op)
    return _ended(group.allreduce([_reducible(tensor, op)], options), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """Reduces several tensors in place.

    Args:
        tensors: a tensor, or a list of them of one dtype.
        op: how values are combined.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    _check_tensors(tensors, "tensor")
    _check_dtypes(tensors)
    if _outside(group, "all_reduce_coalesced"):
        return None
    group, op = _group_or_default(group), _reduction(op)
    options = _set(types.AllreduceOptions(), async_op, reduceOp=op)
    parts = [_reducible(t, op) for t in tensors]
    return _ended(group.allreduce_coalesced(parts, options), async_op)


def broadcast(tensor, src=None, group=None, async_op: bool = False, group_src=None):
    """Copies a rank's tensor to every rank, in place.

    Args:
        tensor: what is sent at the source and overwritten elsewhere.
        src: the source's global rank.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
        group_src: the source's rank in the group, in place of `src`.
    """
    if group_src is None and src is not None and group is None:
        group = _get_default_group()
    if _outside(group, "broadcast"):
        return None
    group = _group_or_default(group)
    root = _rank_in_group(group, src, group_src)
    _check_tensor(tensor, "tensor")
    options = _set(types.BroadcastOptions(), async_op, rootRank=root, rootTensor=0)
    return _ended(group.broadcast([tensor], options), async_op)


def reduce(
    tensor,
    dst=None,
    op=ReduceOp.SUM,
    group=None,
    async_op: bool = False,
    group_dst=None,
):
    """Reduces a tensor; the destination gets the result, in place.

    Args:
        tensor: of the same shape and dtype at every rank.
        dst: the destination's global rank.
        op: how values are combined.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
        group_dst: the destination's rank in the group, in place of `dst`.
    """
    if _outside(group, "reduce"):
        return None
    group, op = _group_or_default(group), _reduction(op)
    root = _rank_in_group(group, dst, group_dst)
    _check_tensor(tensor, "tensor")
    options = _set(types.ReduceOptions(), async_op, reduceOp=op, rootRank=root)
    return _ended(group.reduce([_reducible(tensor, op)], options), async_op)


def all_gather(tensor_list, tensor, group=None, async_op: bool = False):
    """Gathers every rank's tensor at every rank.

    Args:
        tensor_list: one tensor for each rank, which are overwritten.
        tensor: this rank's, of their shape and dtype.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_dtypes(tensor_list, tensor)
    if _outside(group, "all_gather"):
        return None
    group = _group_or_default(group)
    options = _set(types.AllgatherOptions(), async_op)
    return _ended(group.allgather([tensor_list], [tensor], options), async_op)


def all_gather_into_tensor(
    output_tensor, input_tensor, group=None, async_op: bool = False
):
    """Gathers every rank's tensor into one, below each other.

    Args:
        output_tensor: of as many times the elements as there are ranks.
        input_tensor: this rank's.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if _outside(group, "all_gather_into_tensor"):
        return None
    group = _group_or_default(group)
    options = _set(types.AllgatherOptions(), async_op)
    work = group._allgather_base(output_tensor, input_tensor, options)
    return _ended(work, async_op)


def all_gather_single(output_tensor, input_tensor, group=None, async_op: bool = False):
    """The same as `all_gather_into_tensor`."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


_all_gather_base = all_gather_single


def all_gather_coalesced(
    output_tensor_lists, input_tensor_list, group=None, async_op: bool = False
):
    """Gathers several tensors of every rank.

    Args:
        output_tensor_lists: for each rank a list of tensors, which are overwritten.
        input_tensor_list: this rank's list.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensors(input_tensor_list, "tensor_list")
    _check_dtypes(input_tensor_list)
    for outputs in output_tensor_lists:
        _check_tensors(outputs, "output_tensor_lists")
        _check_dtypes(outputs)
    if _outside(group, "all_gather_coalesced"):
        return None
    group = _group_or_default(group)
    options = _set(types.AllgatherOptions(), async_op)
    work = group.allgather_coalesced(output_tensor_lists, input_tensor_list, options)
    return _ended(work, async_op)


def _check_list(rank: int, root: int, tensors, name: str, where: str) -> None:
    if rank == root:
        if not tensors:
            raise ValueError(f"Argument ``{name}`` must be specified on {where} rank.")
    elif tensors:
        raise ValueError(
            f"Argument ``{name}`` must NOT be specified on non-{where} rank."
        )


def gather(
    tensor,
    gather_list=None,
    dst=None,
    group=None,
    async_op: bool = False,
    group_dst=None,
):
    """Gathers every rank's tensor at one.

    Args:
        tensor: this rank's.
        gather_list: one tensor for each rank, at the destination alone.
        dst: the destination's global rank; 0 by default.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
        group_dst: the destination's rank in the group, in place of `dst`.
    """
    _check_tensor(tensor, "tensor")
    if gather_list:
        _check_tensors(gather_list, "gather_list")
    else:
        gather_list = []
    _check_dtypes(tensor, gather_list)
    if _outside(group, "gather"):
        return None
    group = _group_or_default(group)
    if dst is None and group_dst is None:
        dst = 0
    root = _rank_in_group(group, dst, group_dst)
    _check_list(group.rank(), root, gather_list, "gather_list", "destination")
    outputs = [gather_list] if group.rank() == root else []
    options = _set(types.GatherOptions(), async_op, rootRank=root)
    return _ended(group.gather(outputs, [tensor], options), async_op)


def scatter(
    tensor,
    scatter_list=None,
    src=None,
    group=None,
    async_op: bool = False,
    group_src=None,
):
    """Gives each rank one of a rank's tensors.

    Args:
        tensor: what is overwritten.
        scatter_list: one tensor for each rank, at the source alone.
        src: the source's global rank; 0 by default.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
        group_src: the source's rank in the group, in place of `src`.
    """
    _check_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensors(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_dtypes(tensor, scatter_list)
    if _outside(group, "scatter"):
        return None
    group = _group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = _rank_in_group(group, src, group_src)
    _check_list(group.rank(), root, scatter_list, "scatter_list", "source")
    inputs = [scatter_list] if group.rank() == root else []
    options = _set(types.ScatterOptions(), async_op, rootRank=root)
    return _ended(group.scatter([tensor], inputs, options), async_op)


def reduce_scatter(
    output, input_list, op=ReduceOp.SUM, group=None, async_op: bool = False
):
    """Reduces lists of tensors; rank r gets entry r.

    Args:
        output: what is overwritten.
        input_list: one tensor for each rank, of the output's shape.
        op: how values are combined.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    _check_dtypes(output, input_list)
    if _outside(group, "reduce_scatter"):
        return None
    group = _group_or_default(group)
    options = _set(types.ReduceScatterOptions(), async_op, reduceOp=_reduction(op))
    return _ended(group.reduce_scatter([output], [input_list], options), async_op)


def reduce_scatter_tensor(
    output, input, op=ReduceOp.SUM, group=None, async_op: bool = False
):
    """Reduces a tensor; rank r gets part r of it.

    Args:
        output: what is overwritten.
        input: of as many times the elements as there are ranks.
        op: how values are combined.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if _outside(group, "reduce_scatter_tensor"):
        return None
    group = _group_or_default(group)
    options = _set(types.ReduceScatterOptions(), async_op, reduceOp=_reduction(op))
    return _ended(group._reduce_scatter_base(output, input, options), async_op)


def reduce_scatter_single(
    output, input, op=ReduceOp.SUM, group=None, async_op: bool = False
):
    """The same as `reduce_scatter_tensor`."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


_reduce_scatter_base = reduce_scatter_single


def all_to_all(
    output_tensor_list, input_tensor_list, group=None, async_op: bool = False
):
    """Sends entry r of a list to rank r, and receives one of each rank.

    Args:
        output_tensor_list: one tensor for each rank, which are overwritten.
        input_tensor_list: one tensor for each rank.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    _check_dtypes(output_tensor_list, input_tensor_list)
    if _outside(group, "all_to_all"):
        return None
    group = _group_or_default(group)
    options = _set(types.AllToAllOptions(), async_op)
    work = group.alltoall(output_tensor_list, input_tensor_list, options)
    return _ended(work, async_op)


def all_to_all_single(
    output,
    input,
    output_split_sizes=None,
    input_split_sizes=None,
    group=None,
    async_op: bool = False,
):
    """Sends part r of a tensor to rank r, and receives a part of each rank.

    Args:
        output: what is overwritten.
        input: split along the first dimension.
        output_split_sizes: rows that come from each rank; equal parts by default.
        input_split_sizes: rows that go to each rank, the same.
        group: the ranks; all by default.
        async_op: return a work that is waited for.
    """
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_dtypes(output, input)
    if _outside(group, "all_to_all_single"):
        return None
    group = _group_or_default(group)
    options = _set(types.AllToAllOptions(), async_op)
    work = group.alltoall_base(
        output, input, output_split_sizes or [], input_split_sizes or [], options
    )
    return _ended(work, async_op)


def barrier(
    group=None,
    async_op: bool = False,
    device_ids=None,
    timeout: timedelta | None = None,
):
    """Returns when every rank has called it.

    Args:
        group: the ranks; all by default.
        async_op: return a work that is waited for.
        device_ids: of no use on the CPU.
        timeout: the group's by default.
    """
    if _outside(group, "barrier"):
        return None
    group = _group_or_default(group)
    options = _set(types.BarrierOptions(), async_op, timeout=timeout)
    return _ended(group.barrier(options), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """A barrier that names who does not come.

    Args:
        group: the ranks; all by default.
        timeout: the group's by default.
        wait_all_ranks: whether all that are missing are named, or the first.

    Raises:
        RuntimeError: names the missing ranks, at rank 0.
        ValueError: the backend is neither gloo nor mpi.
    """
    from ._join import get_backend

    if _outside(group, "monitored_barrier"):
        return
    group = _group_or_default(group)
    if get_backend(group) not in (Backend.GLOO, Backend.MPI):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    group.monitored_barrier(timeout, wait_all_ranks)
