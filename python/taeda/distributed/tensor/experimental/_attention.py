"""Context parallel: sequences that are cut over ranks, and attention between the parts.

Note [Chunks of a sequence]
A sequence is cut into twice as many chunks as there are ranks, and rank r holds the
chunks r and 2n - 1 - r: under a causal mask every rank then has as much to compute.
Where the length is not divisible so, each rank holds the chunk r of n.
"""

from __future__ import annotations

from contextlib import contextmanager

import taeda
from taeda.nn import functional as F
from taeda.overrides import TorchFunctionMode

from ... import _functional_collectives as functional
from ...device_mesh import DeviceMesh
from ._ring import RingAttention

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

Tensor = taeda.Tensor

# How keys and values travel; one value for the process, as in PyTorch.
_rotates_by = ["allgather"]


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values of other ranks come to this one.

    Args:
        rotate_method: "alltoall" passes them around the ring, so that a rank has those
            of one other; "allgather" (the default) gathers them once.

    Raises:
        NotImplementedError: another method.
    """
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(
            f"Context Parallel does not support using {rotate_method} for kv shards "
            "rotation"
        )
    _rotates_by[0] = rotate_method


def chunks_of(rank: int, count: int, is_balanced: bool) -> list[int]:
    """The chunks that a rank holds, see Note [Chunks of a sequence]."""
    return [rank, 2 * count - 1 - rank] if is_balanced else [rank]


def _is_balanced(length: int, count: int) -> bool:
    return length % (2 * count) == 0


def _shard(tensor: Tensor, dim: int, mesh: DeviceMesh) -> Tensor:
    """This rank's chunks of a tensor.

    Raises:
        ValueError: a length that the ranks cannot share evenly.
    """
    count, length = mesh.size(), tensor.shape[dim]
    if length % count:
        raise ValueError(
            f"context_parallel: a sequence of length {length} cannot be cut evenly for "
            f"{count} ranks"
        )
    balanced = _is_balanced(length, count)
    parts = tensor.chunk(2 * count if balanced else count, dim)
    own = chunks_of(mesh.get_local_rank(), count, balanced)
    return taeda.cat([parts[i] for i in own], dim)


class _Attention(TorchFunctionMode):
    """Calls of attention see the keys and values of all ranks."""

    def __init__(self, mesh: DeviceMesh, is_balanced: bool) -> None:
        super().__init__()
        self.mesh, self.is_balanced = mesh, is_balanced

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attend(*args, **(kwargs or {}))

    def _attend(
        self,
        query,
        key,
        value,
        attn_mask=None,
        dropout_p=0.0,
        is_causal=False,
        scale=None,
        enable_gqa=False,
    ):
        if attn_mask is not None or dropout_p:
            raise NotImplementedError(
                "scaled_dot_product_attention within context_parallel: attn_mask and "
                "dropout_p"
            )
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key = key.repeat_interleave(groups, -3)
            value = value.repeat_interleave(groups, -3)
        count = self.mesh.size()
        held = [chunks_of(r, count, self.is_balanced) for r in range(count)]
        group, passes = self.mesh.get_group(), _rotates_by[0] == "alltoall"
        return RingAttention.apply(
            query, key, value, held, bool(is_causal), scale, group, passes
        )


@contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: list[Tensor] | None = None,
    buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
):
    """Within, tensors hold this rank's part of a sequence, and attention sees it all.

    `scaled_dot_product_attention` of plain tensors computes with the keys and values of
    all ranks, without a mask or causal. What else treats positions alike needs nothing.

    Args:
        mesh: of one dimension.
        buffers: tensors that are cut in place: inputs, labels, tables of positions.
        buffer_seq_dims: along which dimension each is cut.
        no_restore_buffers: those that stay cut afterwards.

    Raises:
        ValueError: another number of dimensions than buffers, a buffer to leave that
            is none of them, or a length that ranks cannot share.
        NotImplementedError: attention with a mask or dropout.
    """
    buffers, dims = buffers or [], buffer_seq_dims or []
    left = list(no_restore_buffers or ())
    if len(buffers) != len(dims):
        raise ValueError(
            "`seq_dims` must have the same number of elements as `buffers`."
        )
    if any(all(b is not buffer for b in buffers) for buffer in left):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    length = buffers[0].shape[dims[0]] if buffers else 2 * mesh.size()
    kept = []
    with taeda.no_grad():
        parts = [
            _shard(buffer, dim, mesh) for buffer, dim in zip(buffers, dims, strict=True)
        ]
        for buffer, part in zip(buffers, parts, strict=True):
            if all(buffer is not other for other in left):
                kept.append((buffer, buffer.clone()))
            buffer.resize_(part.shape).copy_(part)
    try:
        with _Attention(mesh, _is_balanced(length, mesh.size())):
            yield
    finally:
        with taeda.no_grad():
            for buffer, whole in kept:
                buffer.resize_(whole.shape).copy_(whole)


def context_parallel_unshard(
    mesh: DeviceMesh, buffers: list[Tensor], seq_dims: list[int], load_balancer=None
) -> list[Tensor]:
    """The whole sequences of which ranks hold parts, at every rank.

    Args:
        mesh: of one dimension.
        buffers: this rank's parts, as `context_parallel` cuts them.
        seq_dims: along which dimension each is cut.
        load_balancer: not supported.

    Raises:
        NotImplementedError: another order of chunks.
    """
    if load_balancer is not None:
        raise NotImplementedError("context_parallel_unshard: load_balancer")
    count, found = mesh.size(), []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        whole = functional.all_gather_tensor(buffer, dim, mesh)
        balanced = _is_balanced(whole.shape[dim], count)
        order = [c for r in range(count) for c in chunks_of(r, count, balanced)]
        parts = whole.chunk(len(order), dim)
        found.append(taeda.cat([parts[order.index(i)] for i in range(len(order))], dim))
    return found
