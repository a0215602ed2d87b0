"""Copies of tensors to and from several devices.

Devices are given by number or as `taeda.device`; -1 is the CPU. The copies of gradients
go back the same way: each function is made of operators that have derivatives.
"""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _device(given) -> taeda.device:
    if isinstance(given, int):
        return taeda.device("cuda", given) if given >= 0 else taeda.device("cpu")
    return taeda.device(given)


def _one_of(name: str, devices, out) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified: {name} got "
            f"devices={devices} and out={'None' if out is None else 'tensors'}"
        )


def broadcast(tensor: Tensor, devices=None, *, out=None) -> tuple[Tensor, ...]:
    """A copy of a tensor for each device, or into each tensor of `out`.

    Raises:
        RuntimeError: both or neither of `devices` and `out` are given.

    Example:
        >>> [c.tolist() for c in taeda.cuda.comm.broadcast(taeda.ones(2), [-1, -1])]
        [[1.0, 1.0], [1.0, 1.0]]
    """
    _one_of("broadcast", devices, out)
    if devices is not None:
        return tuple(tensor.to(_device(d)) for d in devices)
    for target in out:
        target.copy_(tensor)
    return tuple(out)


def broadcast_coalesced(
    tensors, devices, buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """Copies of several tensors: a tuple for each device.

    Args:
        buffer_size: of no effect: each tensor is copied by itself.

    Example:
        >>> taeda.cuda.comm.broadcast_coalesced([taeda.ones(1), taeda.zeros(1)], [-1])
        [(tensor([1.]), tensor([0.]))]
    """
    return [tuple(t.to(_device(d)) for t in tensors) for d in devices]


def reduce_add(inputs, destination=None) -> Tensor:
    """The sum of tensors of several devices.

    Args:
        inputs: tensors of one shape.
        destination: where the sum lies; None for the current device.

    Raises:
        ValueError: a shape differs from the first.

    Example:
        >>> taeda.cuda.comm.reduce_add([taeda.ones(2), taeda.ones(2)], -1)
        tensor([2., 2.])
    """
    target = _target(destination)
    first = inputs[0]
    for i, t in enumerate(inputs):
        if t.shape != first.shape:
            raise ValueError(
                f"input {i} has invalid size: got {tuple(t.shape)}, but expected "
                f"{tuple(first.shape)}"
            )
    total = first.to(target, copy=True)
    for t in inputs[1:]:
        total = total + t.to(target)
    return total


def reduce_add_coalesced(
    inputs, destination=None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Sums of several tensors.

    Args:
        inputs: for each device the tensors of it.
        destination: as of `reduce_add`.
        buffer_size: of no effect: each tensor is added by itself.

    Example:
        >>> taeda.cuda.comm.reduce_add_coalesced([[taeda.ones(1)], [taeda.ones(1)]], -1)
        (tensor([2.]),)
    """
    return tuple(
        reduce_add(column, destination) for column in zip(*inputs, strict=True)
    )


def scatter(
    tensor: Tensor,
    devices=None,
    chunk_sizes=None,
    dim: int = 0,
    streams=None,
    *,
    out=None,
) -> tuple[Tensor, ...]:
    """Parts of a tensor, one for each device, or into each tensor of `out`.

    Args:
        chunk_sizes: of the parts; equal ones where it is None.
        dim: the dim that is cut.
        streams: on which parts are copied, a stream or None for each device.

    Raises:
        RuntimeError: both or neither of `devices` and `out` are given; `chunk_sizes`
            with `out`; sizes that do not fit the devices or the tensor.

    Example:
        >>> taeda.cuda.comm.scatter(taeda.arange(4), [-1, -1])
        (tensor([0, 1]), tensor([2, 3]))
    """
    _one_of("scatter", devices, out)
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError(
                "'chunk_sizes' must not be specified when 'out' is specified, but got "
                f"chunk_sizes={chunk_sizes}"
            )
        parts = tensor.split([t.shape[dim] for t in out], dim)
        for target, part in zip(out, parts, strict=True):
            target.copy_(part)
        return tuple(out)
    places = [_device(d) for d in devices]
    if chunk_sizes is None:
        parts = tensor.chunk(len(places), dim)
    elif len(chunk_sizes) != len(places):
        raise RuntimeError(
            "Expected devices and chunk_sizes to be of same length, but got "
            f"{len(places)} and {len(chunk_sizes)}"
        )
    else:
        parts = tensor.split(list(chunk_sizes), dim)
    streams = streams or [None] * len(places)
    return tuple(
        _on(stream, part, place)
        for part, place, stream in zip(parts, places, streams, strict=False)
    )


def _on(stream, part: Tensor, place: taeda.device) -> Tensor:
    if stream is None:
        return part.to(place)
    with taeda.cuda.stream(stream):
        return part.to(place, non_blocking=True)


def gather(tensors, dim: int = 0, destination=None, *, out=None) -> Tensor:
    """Tensors of several devices side by side.

    Args:
        dim: along which they are joined.
        destination: where the result lies; None for the current device, -1 the CPU.
        out: is written instead.

    Raises:
        RuntimeError: `destination` and `out` are given.

    Example:
        >>> taeda.cuda.comm.gather([taeda.ones(1), taeda.zeros(2)], 0, -1)
        tensor([1., 0., 0.])
    """
    if out is None:
        target = _target(destination)
        return taeda.cat([t.to(target) for t in tensors], dim)
    if destination is not None:
        raise RuntimeError(
            "'destination' must not be specified when 'out' is specified, but got "
            f"destination={destination}"
        )
    return out.copy_(taeda.cat([t.to(out.device) for t in tensors], dim))


def _target(destination) -> taeda.device:
    if destination is None:
        return taeda.device("cuda", taeda.cuda.current_device())
    return _device(destination)
