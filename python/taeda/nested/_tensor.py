"""The class of nested tensors."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._subclasses.carried import Carried

from ._size import Ragged

__all__ = ["NestedTensor"]


class NestedTensor(Carried):
    """A batch of tensors that differ in one dim, packed along it.

    Args:
        values: the entries side by side along the packed dim.
        ragged: where they begin and end.
        place: the ragged dim, counted with the batch as dim 0.
    """

    is_nested = True
    layout = taeda.jagged

    @staticmethod
    def __new__(cls, values: Tensor, ragged: Ragged, place: int = 1):
        return Carried._make(cls, values)

    def __init__(self, values: Tensor, ragged: Ragged, place: int = 1) -> None:
        self._ragged, self._ragged_idx = ragged, place

    def _like(self, values: Tensor, place: int | None = None):
        return NestedTensor(values, self._ragged, place or self._ragged_idx)

    @classmethod
    def _call(cls, func, args, kwargs):
        from ._rules import call

        return call(func, args, kwargs)

    @property
    def _values(self) -> Tensor:
        return self._inner

    @property
    def shape(self):
        sizes = list(self._inner.shape)
        sizes[self._ragged_idx - 1] = self._ragged.size
        return taeda.Size([len(self._ragged), *sizes])

    def size(self, dim: int | None = None):
        if dim is None:
            return self.shape
        return self.shape[_in_range(dim, self.ndim)]

    def stride(self, dim: int | None = None):
        strides = self._inner.stride()
        packed = strides[self._ragged_idx - 1]
        outer = self._ragged.size * packed
        found = (outer, *strides)
        return found if dim is None else found[_in_range(dim, self.ndim)]

    @property
    def ndim(self) -> int:
        return self._inner.ndim + 1

    dim = ndimension = lambda self: self.ndim

    def numel(self) -> int:
        if self._ragged.lengths is None:
            return self._inner.numel()
        width = 1
        for i, n in enumerate(self._inner.shape):
            width *= 1 if i == self._ragged_idx - 1 else n
        return width * sum(length for _, length in self._ragged.spans())

    nelement = numel

    def is_contiguous(self, memory_format=taeda.contiguous_format) -> bool:
        """Whether the entries lie side by side without holes."""
        return self._ragged.lengths is None and self._inner.is_contiguous()

    def values(self) -> Tensor:
        """The entries side by side; gradients flow through it."""
        return self._inner

    def offsets(self) -> Tensor:
        """Where the entries begin along the packed dim, and where the last ends."""
        return self._ragged.offsets

    def lengths(self) -> Tensor | None:
        """Their lengths where there are holes between them."""
        return self._ragged.lengths

    # Programs reach for them by these names, too.
    _offsets = property(offsets)
    _lengths = property(lengths)

    def to_padded_tensor(self, padding: float, output_size=None) -> Tensor:
        """A dense tensor of all entries, filled up to the longest."""
        from ._padding import to_padded_tensor

        return to_padded_tensor(self, padding, output_size)

    def _min_seqlen(self) -> int:
        return min(length for _, length in self._ragged.spans())

    def _max_seqlen(self) -> int:
        return self._ragged.longest()

    def __len__(self) -> int:
        return len(self._ragged)

    def __repr__(self, *, tensor_contents=None) -> str:
        history = ", requires_grad=True" if self.requires_grad else ""
        if self.grad_fn is not None:
            history = f", grad_fn={self.grad_fn}"
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}"
            f"{history}, contiguous={self.is_contiguous()})"
        )

    def __deepcopy__(self, memo):
        from copy import deepcopy

        known = memo.get(id(self))
        if known is None:
            ragged = deepcopy(self._parts(), memo)
            known = memo[id(self)] = _rebuilt(*ragged)
        return known

    def _part(self, begin: int, end: int):
        """The entries from a number to another."""
        offsets = self.offsets()[begin : end + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        at = self._ragged_idx - 1
        values = self._inner.narrow(at, first, last - first)
        return NestedTensor(values, Ragged(offsets - first), self._ragged_idx)

    def _parts(self) -> tuple:
        ragged = self._ragged
        return self._inner, ragged.offsets, ragged.lengths, self._ragged_idx

    def __reduce_ex__(self, protocol):
        values, offsets, lengths, place = self._parts()
        # The ragged size that offsets carry is a number of this process.
        return _rebuilt, (values, offsets.detach(), lengths, place)


def _rebuilt(values, offsets, lengths, place):
    return NestedTensor(values, Ragged(offsets, lengths), place)


def _in_range(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    return dim % ndim
