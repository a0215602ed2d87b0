"""Collectives of Python objects, which travel pickled.

What comes from other ranks is unpickled, which can run code of whoever sent it: all
ranks of a group trust each other.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import taeda

from ._collectives import (
    _outside,
    _rank_in_group,
    all_gather,
    broadcast,
    gather,
    scatter,
)
from ._join import _group_or_default, get_world_size, own_device
from ._messages import recv, send

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _object_to_tensor(obj: Any, device=None, group=None):
    """An object's bytes and their number, as tensors."""
    file = io.BytesIO()
    pickle.Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(obj)
    data = taeda.frombuffer(bytearray(file.getbuffer()), dtype=taeda.uint8)
    place = device or own_device(group)
    size = taeda.tensor([data.numel()], dtype=taeda.int64)
    return data.to(place), size.to(place)


def _tensor_to_object(tensor, size: int, group=None) -> Any:
    """The object of some bytes, of which there may be more than `size`."""
    return pickle.loads(tensor[: int(size)].cpu().numpy().tobytes())


def _gather_sizes(size, group) -> list[int]:
    sizes = [
        taeda.zeros(1, dtype=taeda.int64, device=own_device(group))
        for _ in range(get_world_size(group))
    ]
    all_gather(sizes, size, group=group)
    return [int(s) for s in sizes]


def _padded(data, length: int):
    room = data.new_zeros(length)
    room[: data.numel()] = data
    return room


def all_gather_object(object_list: list, obj: Any, group=None) -> None:
    """Gathers every rank's object at every rank.

    Args:
        object_list: as long as there are ranks; it is overwritten.
        obj: this rank's, which can be pickled.
        group: the ranks; all by default.
    """
    if _outside(group, "all_gather_object"):
        return
    data, size = _object_to_tensor(obj, group=group)
    sizes = _gather_sizes(size, group)
    longest = max(sizes)
    parts = [
        taeda.empty(longest, dtype=taeda.uint8, device=own_device(group)) for _ in sizes
    ]
    all_gather(parts, _padded(data, longest), group=group)
    for i, (part, length) in enumerate(zip(parts, sizes, strict=True)):
        object_list[i] = _tensor_to_object(part, length)


def gather_object(
    obj: Any,
    object_gather_list: list | None = None,
    dst: int | None = None,
    group=None,
    group_dst: int | None = None,
) -> None:
    """Gathers every rank's object at one.

    Args:
        obj: this rank's, which can be pickled.
        object_gather_list: at the destination, as long as there are ranks.
        dst: the destination's global rank; 0 by default.
        group: the ranks; all by default.
        group_dst: the destination's rank in the group, in place of `dst`.
    """
    if _outside(group, "gather_object"):
        return
    group = _group_or_default(group)
    if dst is None and group_dst is None:
        dst = 0
    root = _rank_in_group(group, dst, group_dst)
    is_root = group.rank() == root
    if is_root and not object_gather_list:
        raise ValueError(
            "Argument ``object_gather_list`` must be specified on destination rank."
        )
    data, size = _object_to_tensor(obj, group=group)
    sizes = _gather_sizes(size, group)
    longest = max(sizes)
    parts = [
        taeda.empty(longest, dtype=taeda.uint8, device=own_device(group)) for _ in sizes
    ]
    outputs = parts if is_root else None
    gather(_padded(data, longest), outputs, group=group, group_dst=root)
    if is_root:
        assert object_gather_list is not None
        for i, (part, length) in enumerate(zip(parts, sizes, strict=True)):
            object_gather_list[i] = _tensor_to_object(part, length)


def _joined(objects: list, group):
    """The bytes of several objects, one after the other, and how many each has."""
    pairs = [_object_to_tensor(obj, group=group) for obj in objects]
    none = taeda.empty(0, device=own_device(group))
    data = taeda.cat([d for d, _ in pairs]) if pairs else none
    return data, taeda.cat([s for _, s in pairs])


def _part(object_list: list, data, sizes) -> None:
    at = 0
    for i, length in enumerate(sizes.tolist()):
        object_list[i] = _tensor_to_object(data[at : at + length], length)
        at += length


def broadcast_object_list(
    object_list: list,
    src: int | None = None,
    group=None,
    device=None,
    group_src: int | None = None,
) -> None:
    """Copies a rank's objects to every rank, in place.

    Args:
        object_list: equally long at every rank.
        src: the source's global rank; 0 by default.
        group: the ranks; all by default.
        device: where the bytes lie meanwhile; the CPU.
        group_src: the source's rank in the group, in place of `src`.
    """
    if _outside(group, "broadcast_object_list"):
        return
    group = _group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = _rank_in_group(group, src, group_src)
    if group.rank() == root:
        data, sizes = _joined(object_list, group)
    else:
        sizes = taeda.zeros(
            len(object_list), dtype=taeda.int64, device=own_device(group)
        )
    broadcast(sizes, group=group, group_src=root)
    if group.rank() != root:
        data = taeda.empty(
            int(sizes.sum()), dtype=taeda.uint8, device=own_device(group)
        )
    broadcast(data, group=group, group_src=root)
    if group.rank() != root:
        _part(object_list, data, sizes)


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list: list | None = None,
    src: int | None = None,
    group=None,
    group_src: int | None = None,
) -> None:
    """Gives each rank one of a rank's objects.

    Args:
        scatter_object_output_list: its first entry is overwritten.
        scatter_object_input_list: one object for each rank, at the source alone.
        src: the source's global rank; 0 by default.
        group: the ranks; all by default.
        group_src: the source's rank in the group, in place of `src`.
    """
    if _outside(group, "scatter_object_list"):
        return
    outputs = scatter_object_output_list
    if not isinstance(outputs, list) or len(outputs) < 1:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at "
            "least 1."
        )
    group = _group_or_default(group)
    if src is None and group_src is None:
        src = 0
    root = _rank_in_group(group, src, group_src)
    parts = lengths = None
    longest = taeda.zeros(1, dtype=taeda.int64, device=own_device(group))
    if group.rank() == root:
        pairs = [
            _object_to_tensor(obj, group=group)
            for obj in scatter_object_input_list or []
        ]
        longest.fill_(max(int(s) for _, s in pairs))
        parts = [_padded(d, int(longest)) for d, _ in pairs]
        lengths = [s for _, s in pairs]
    broadcast(longest, group=group, group_src=root)
    part = taeda.empty(int(longest), dtype=taeda.uint8, device=own_device(group))
    scatter(part, parts, group=group, group_src=root)
    length = taeda.zeros(1, dtype=taeda.int64, device=own_device(group))
    scatter(length, lengths, group=group, group_src=root)
    outputs[0] = _tensor_to_object(part, int(length))


def send_object_list(
    object_list: list,
    dst: int | None = None,
    group=None,
    device=None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to a rank.

    Args:
        object_list: they can be pickled.
        dst: the receiver's global rank.
        group: both are in it; all ranks by default.
        device: where the bytes lie meanwhile; the CPU.
        group_dst: the receiver's rank in the group, in place of `dst`.
        use_batch: of no use here.
    """
    if _outside(group, "send_object_list"):
        return
    group = _group_or_default(group)
    peer = _rank_in_group(group, dst, group_dst)
    data, sizes = _joined(object_list, group)
    send(sizes, group=group, group_dst=peer)
    send(data, group=group, group_dst=peer)


def recv_object_list(
    object_list: list,
    src: int | None = None,
    group=None,
    device=None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects from a rank.

    Args:
        object_list: as long as the sender's; it is overwritten.
        src: the sender's global rank; any by default.
        group: both are in it; all ranks by default.
        device: where the bytes lie meanwhile; the CPU.
        group_src: the sender's rank in the group, in place of `src`.
        use_batch: of no use here.

    Returns:
        The sender's global rank, -1 outside of the group.
    """
    if _outside(group, "recv_object_list"):
        return -1
    sizes = taeda.zeros(len(object_list), dtype=taeda.int64, device=own_device(group))
    source = recv(sizes, src, group=group, group_src=group_src)
    data = taeda.empty(int(sizes.sum()), dtype=taeda.uint8, device=own_device(group))
    recv(data, source, group=group)
    _part(object_list, data, sizes)
    return source
