"""Constructors of nested tensors."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._size import Ragged
from ._tensor import NestedTensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "packed",
]


def _require_jagged(name: str, layout) -> None:
    if layout is not taeda.jagged:
        raise NotImplementedError(
            f"{name}: nested tensors of layout {layout or taeda.strided}; "
            f"layout={taeda.jagged} is here"
        )


def _same(tensors: list, fact: str, of) -> None:
    if len({of(t) for t in tensors}) != 1:
        raise RuntimeError(
            f"When constructing a nested tensor, all tensors in list must {fact}"
        )


def _ragged_place(tensors: list) -> int:
    """The one dim in which the tensors differ, counted with the batch as dim 0."""
    first = tensors[0].shape
    places = [
        d + 1 for d in range(len(first)) if any(t.shape[d] != first[d] for t in tensors)
    ]
    if len(places) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged "
            "layout. Note that the jagged layout only allows for a single ragged "
            "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    return places[0] if places else 1


def _offsets(lengths: list, device) -> Tensor:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return taeda.tensor(ends, dtype=taeda.int64, device=device)


def packed(tensors: list, dtype=None, device=None) -> NestedTensor:
    """Tensors side by side as a nested tensor; gradients flow to them."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    _same(tensors, "have the same dtype", lambda t: t.dtype)
    _same(tensors, "be on the same device", lambda t: t.device)
    _same(tensors, "have the same dim", lambda t: t.ndim)
    if tensors[0].ndim == 0:
        raise RuntimeError(
            "Cannot construct a nested tensor from a list of zero-dim tensors"
        )
    place = _ragged_place(tensors)
    values = taeda.cat(tensors, dim=place - 1).to(
        dtype=dtype or tensors[0].dtype, device=device or tensors[0].device
    )
    lengths = [t.shape[place - 1] for t in tensors]
    return NestedTensor(values, Ragged(_offsets(lengths, values.device)), place)


def nested_tensor(
    tensor_list,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor of copies of tensors (or lists of numbers); a leaf.

    Args:
        tensor_list: tensors that differ in the size of one dim.
        layout: `taeda.jagged`; nested tensors of other layouts are not here.

    Example:
        >>> parts = [taeda.ones(2, 3), taeda.ones(4, 3)]
        >>> nt = taeda.nested.nested_tensor(parts, layout=taeda.jagged)
        >>> nt.offsets()
        tensor([0, 2, 6])
    """
    _require_jagged("nested_tensor", layout)
    if pin_memory:
        raise NotImplementedError("nested_tensor: pin_memory")
    tensors = [
        (t if isinstance(t, Tensor) else taeda.as_tensor(t)).detach()
        for t in tensor_list
    ]
    made = packed(tensors, dtype, device)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None) -> Tensor:
    """A nested tensor of tensors, to which gradients flow.

    Args:
        ts: a nested tensor, a tensor (a batch of entries of one size) or a list.
    """
    if isinstance(ts, NestedTensor):
        if layout not in (None, ts.layout):
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not "
                "supported"
            )
        return ts.to(dtype=dtype or ts.dtype, device=device or ts.device)
    if not isinstance(ts, (Tensor, list, tuple)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / "
            "tuple of tensors "
        )
    if isinstance(ts, Tensor) and ts.ndim < 2:
        raise RuntimeError(
            "as_nested_tensor(): Expected tensor argument to have dim() > 1"
        )
    _require_jagged("as_nested_tensor", layout)
    if isinstance(ts, Tensor):
        values = ts.flatten(0, 1).to(
            dtype=dtype or ts.dtype, device=device or ts.device
        )
        return NestedTensor(
            values, Ragged(_offsets([ts.shape[1]] * ts.shape[0], values.device))
        )
    if not all(isinstance(t, Tensor) for t in ts):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / "
            "tuple of tensors "
        )
    return packed(list(ts), dtype, device)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A nested tensor over packed values.

    Args:
        values: the entries side by side along the packed dim.
        offsets: where they begin, and where the last ends.
        lengths: their lengths, where there are holes between them.
        jagged_dim: the ragged dim, counted with the batch as dim 0; 1 if None.
        min_seqlen, max_seqlen: accepted; they are read from the offsets.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is "
                "required."
            )
        zero = lengths.new_zeros(1)
        offsets, lengths = taeda.cat([zero, lengths.cumsum(0)]), None
    place = 1 if jagged_dim is None else jagged_dim
    ragged = Ragged(offsets, lengths)
    ends = [begin + length for begin, length in ragged.spans()]
    broken = any(begin < 0 or length < 0 for begin, length in ragged.spans())
    if broken or max(ends, default=0) > values.shape[place - 1]:
        raise RuntimeError(
            "nested_tensor_from_jagged(): offsets and lengths reach beyond the values"
        )
    return NestedTensor(values, ragged, place)


def narrow(tensor: Tensor, dim: int, start, length, layout=taeda.strided) -> Tensor:
    """A nested tensor of a part of each row of a tensor, without a copy.

    Args:
        tensor: of at least two dims; dim 0 is the batch.
        dim: 1.
        start, length: a number, or a tensor of one number for each row.
    """
    _require_jagged("narrow", layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, width = tensor.shape[:2]

    def each(value) -> Tensor:
        made = taeda.as_tensor(value, device=tensor.device, dtype=taeda.int64)
        return made.expand(batch)

    start, length = each(start), each(length)
    begins = start + width * taeda.arange(batch, device=tensor.device)
    offsets = taeda.cat([begins, begins[-1:] + length[-1:]])
    values = tensor.flatten(0, 1)
    if bool((begins[1:] == (begins + length)[:-1]).all()):
        # Without holes the entries are the values between the first and the last.
        first, last = int(offsets[0]), int(offsets[-1])
        return NestedTensor(values[first:last], Ragged(offsets - first))
    return nested_tensor_from_jagged(values, offsets, length.contiguous())


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A nested tensor of the elements of each row at which a mask is True.

    Args:
        tensor: of one dim or more; rows lie along the last.
        mask: bool, broadcast with it.
    """
    if tensor.layout is not taeda.strided:
        raise RuntimeError(
            f"nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    tensor, mask = taeda.broadcast_tensors(tensor, mask)
    if tensor.ndim == 0:
        raise RuntimeError("nested.masked_select: expected rows, got a single number")
    counts = mask.sum(-1).flatten().tolist()
    return NestedTensor(
        tensor.masked_select(mask), Ragged(_offsets(counts, tensor.device))
    )
