"""Nested tensors to padded ones and back, by numbers of rows."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._size import Ragged
from ._tensor import NestedTensor

__all__ = ["from_padded", "padded", "rows_of_entries", "to_padded_tensor"]


def to_padded_tensor(
    input: Tensor, padding: float, output_size: tuple | None = None, out=None
) -> Tensor:
    """A dense tensor of all entries, filled up to the longest.

    Args:
        input: a nested tensor.
        padding: what fills the places behind shorter entries.
        output_size: sizes of the result; only that of the ragged dim may be larger.

    Raises:
        RuntimeError: there are holes between the entries, or the sizes do not fit.
    """
    if out is not None:
        raise NotImplementedError("to_padded_tensor: out")
    if not input.is_nested:
        raise RuntimeError("to_padded_tensor(): expected a nested tensor")
    if input.lengths() is not None:
        raise RuntimeError(
            "to_padded_tensor(): not supported for nested tensors with holes"
        )
    width = None if output_size is None else output_size[input._ragged_idx]
    return padded(input, padding, width)


def padded(nt: NestedTensor, fill, width: int | None = None) -> Tensor:
    """All entries with the ragged dim filled up to a width, the longest's if None."""
    ragged, place = nt._ragged, nt._ragged_idx
    width = ragged.longest() if width is None else width
    rows = nt._values.movedim(place - 1, 0)
    within = taeda.arange(width, device=rows.device)
    lengths = ragged.offsets.diff() if ragged.lengths is None else ragged.lengths
    index = within + ragged.offsets[:-1, None]
    valid = within < lengths[:, None]
    if rows.shape[0] == 0:
        rows = rows.new_zeros((1, *rows.shape[1:]))
    index = index.masked_fill(~valid, 0).flatten()
    dense = rows.index_select(0, index).unflatten(0, valid.shape)
    valid = valid.reshape(*valid.shape, *[1] * (rows.ndim - 1))
    value = taeda.as_tensor(fill, dtype=rows.dtype, device=rows.device)
    return taeda.where(valid, dense, value).movedim(1, place)


def from_padded(dense: Tensor, ragged: Ragged, place: int) -> Tensor:
    """The values of the entries in a padded tensor, without the padding."""
    rows = dense.movedim(place, 1)
    width = rows.shape[1]
    index = [
        entry * width + i
        for entry, (_, length) in enumerate(ragged.spans())
        for i in range(length)
    ]
    chosen = taeda.tensor(index, dtype=taeda.int64, device=dense.device)
    return rows.flatten(0, 1).index_select(0, chosen).movedim(0, place - 1)


def rows_of_entries(nt: NestedTensor) -> Tensor:
    """For each row along the packed dim the entry it belongs to."""
    lengths = nt._ragged.offsets.diff()
    return taeda.repeat_interleave(lengths)
