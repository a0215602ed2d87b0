"""Messages from rank to rank, and several operations at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import taeda

from ._collectives import _check_tensor, _outside, _rank_in_group
from ._join import _get_default_group, _group_or_default, get_global_rank
from ._process_group import ProcessGroup
from ._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _other(group, peer: int, name: str) -> int:
    if peer == group.rank():
        raise ValueError(
            f"Invalid {name} rank: {name} rank should not be the same as the rank of "
            "the current process."
        )
    return peer


def isend(tensor, dst=None, group=None, tag: int = 0, group_dst=None) -> Work | None:
    """Sends a tensor to a rank, without waiting.

    Args:
        tensor: contiguous; it stays as it is until the work has ended.
        dst: the receiver's global rank.
        group: both are in it; all ranks by default.
        tag: of the message; the receiver asks for it.
        group_dst: the receiver's rank in the group, in place of `dst`.

    Returns:
        The work; None outside of the group.
    """
    if _outside(group, "isend"):
        return None
    group = _group_or_default(group)
    peer = _other(group, _rank_in_group(group, dst, group_dst), "destination")
    _check_tensor(tensor, "tensor")
    if tensor.is_complex():
        tensor = taeda.view_as_real(tensor)
    return group.send([tensor], peer, tag)


def irecv(tensor, src=None, group=None, tag: int = 0, group_src=None) -> Work | None:
    """Receives a tensor from a rank, without waiting.

    Args:
        tensor: what is overwritten, contiguous and of the sender's size.
        src: the sender's global rank; any by default.
        group: both are in it; all ranks by default.
        tag: of the message.
        group_src: the sender's rank in the group, in place of `src`.

    Returns:
        The work; None outside of the group.
    """
    _check_tensor(tensor, "tensor")
    if _outside(group, "irecv"):
        return None
    group = _group_or_default(group)
    if tensor.is_complex():
        tensor = taeda.view_as_real(tensor)
    if src is None and group_src is None:
        return group.recv_anysource([tensor], tag)
    peer = _other(group, _rank_in_group(group, src, group_src), "source")
    return group.recv([tensor], peer, tag)


def send(tensor, dst=None, group=None, tag: int = 0, group_dst=None) -> None:
    """Sends a tensor to a rank; see `isend`. Outside of the group it is refused."""
    group = _group_or_default(group)
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag: int = 0, group_src=None) -> int:
    """Receives a tensor from a rank; see `irecv`.

    Returns:
        The sender's global rank, -1 outside of the group.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    pg = _group_or_default(group)
    if src is None and group_src is None:
        return get_global_rank(pg, work._source_rank())
    return get_global_rank(pg, _rank_in_group(pg, src, group_src))


class P2POp:
    """A message of `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what is sent or overwritten.
        peer: the other's global rank.
        group: both are in it; all ranks by default.
        tag: of the message.
        group_peer: the other's rank in the group, in place of `peer`.

    Raises:
        ValueError: another function.
    """

    def __init__(
        self,
        op: Callable,
        tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type "
                f"``{taeda.__name__}.distributed.isend`` or "
                f"``{taeda.__name__}.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default(group)
        self.group_peer = _rank_in_group(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer)
        _other(self.group, self.group_peer, "peer")

    def __repr__(self) -> str:
        me = get_global_rank(self.group, self.group.rank())
        name = self.op.__name__
        ends = (me, self.peer) if name == "isend" else (self.peer, me)
        return (
            f"P2POp({name} pg={self.group.group_name}, src={ends[0]}, dst={ends[1]}, "
            f"{tuple(self.tensor.shape)}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts several messages.

    Args:
        p2p_op_list: of one group.

    Returns:
        Their works, in order.

    Raises:
        ValueError: an entry is no `P2POp`, the groups differ, or there is none.
    """
    if not isinstance(p2p_op_list, list) or not all(
        isinstance(op, P2POp) for op in p2p_op_list
    ):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            f"``{taeda.__name__}.distributed.P2POp``."
        )
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: expected messages, got an empty list")
    group = p2p_op_list[0].group
    if any(op.group is not group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    batch = _batching(group, p2p_op_list[0].tensor.device)
    if batch is not None:
        batch.start_coalescing()
    works = [
        op.op(op.tensor, group=op.group, tag=op.tag, **_end_of(op))
        for op in p2p_op_list
    ]
    if batch is not None:
        return [batch.end_coalescing()]
    return [work for work in works if work is not None]


def _batching(group, device):
    """The backend that moves messages all at once, None where each goes alone."""
    if _outside(group, "batch_isend_irecv"):
        return None
    backend = _group_or_default(group)._backends.get(device.type)
    return backend if hasattr(backend, "start_coalescing") else None


def _end_of(op: P2POp) -> dict[str, int]:
    name = "group_dst" if op.op is isend else "group_src"
    return {name: op.group_peer}


class _CoalescingManager:
    """The works that were started in a block."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Adds a work to those that `wait` waits for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for all."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group=None, device=None, async_ops: bool | None = False):
    """Collectives of one kind in a block, which end with it (or with `wait`).

    On the CPU each runs by itself; what the block adds is one place to wait.
    """
    manager = _CoalescingManager()
    _group_or_default(group or _get_default_group())
    yield manager
    if not async_ops:
        manager.wait()
