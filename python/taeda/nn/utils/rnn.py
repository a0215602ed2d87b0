"""Sequences of different lengths in one batch: packed, and padded."""

from __future__ import annotations

import taeda
from taeda import Tensor

from .._native import native
from .._types import MaybeInt, MaybeTensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence(tuple):
    """Steps of several sequences, all first ones, then all second ones, ...

    Made by `pack_sequence` and `pack_padded_sequence`.

    Args:
        data (Tensor): (steps of all sequences, ...).
        batch_sizes (Tensor): int64 on the CPU, sequences that have a first, a second
            ... step; may be left out where `data` is the pair (data, batch_sizes).
        sorted_indices (Tensor): order of the sequences by length; None where they
            were given in that order.
        unsorted_indices (Tensor): the way back; default computed.

    Raises:
        ValueError: `batch_sizes` on another device.

    Example:
        >>> packed = taeda.nn.utils.rnn.pack_sequence([taeda.ones(2), taeda.zeros(1)])
        >>> packed.data, packed.batch_sizes
        (tensor([1., 0., 1.]), tensor([2, 1]))
    """

    __slots__ = ()
    _fields = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: MaybeTensor = None,
        sorted_indices: MaybeTensor = None,
        unsorted_indices: MaybeTensor = None,
    ):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU: use pack_sequence or "
                "pack_padded_sequence to make a PackedSequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        parts = (data, batch_sizes, sorted_indices, unsorted_indices)
        return tuple.__new__(cls, parts)

    data = property(lambda self: self[0], doc="The steps.")
    batch_sizes = property(lambda self: self[1], doc="Sequences at each step.")
    sorted_indices = property(lambda self: self[2], doc="Order by length.")
    unsorted_indices = property(lambda self: self[3], doc="The way back.")

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self[i]!r}" for i, name in enumerate(self._fields))
        return f"{type(self).__name__}({shown})"

    def _map(self, fn):
        """Another sequence with `fn` of data and indices."""
        data, sizes, *orders = self
        return type(self)(fn(data), sizes, *(o if o is None else fn(o) for o in orders))

    def to(self, *args, **kwargs) -> PackedSequence:
        """Move or cast as `Tensor.to`; the indices move along, keeping their dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = (o if o is None else o.to(data.device) for o in self[2:])
        return type(self)(data, self.batch_sizes, *orders)

    def pin_memory(self) -> PackedSequence:
        """A copy in page-locked memory."""
        return self._map(lambda t: t.pin_memory())

    def _on(self, device, args, kwargs):
        """`to`, to `device` unless the arguments say where."""
        probe = self.data.new_empty(0).to(*args, **kwargs)
        if probe.device.type != device:
            kwargs["device"] = device
        return self.to(*args, **kwargs)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """Move to a CUDA device."""
        return self._on("cuda", args, kwargs)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """Move to the CPU."""
        return self._on("cpu", args, kwargs)

    def double(self) -> PackedSequence:
        """Cast the data to float64."""
        return self.to(dtype=taeda.float64)

    def float(self) -> PackedSequence:
        """Cast the data to float32."""
        return self.to(dtype=taeda.float32)

    def half(self) -> PackedSequence:
        """Cast the data to float16."""
        return self.to(dtype=taeda.float16)

    def long(self) -> PackedSequence:
        """Cast the data to int64."""
        return self.to(dtype=taeda.int64)

    def int(self) -> PackedSequence:
        """Cast the data to int32."""
        return self.to(dtype=taeda.int32)

    def short(self) -> PackedSequence:
        """Cast the data to int16."""
        return self.to(dtype=taeda.int16)

    def char(self) -> PackedSequence:
        """Cast the data to int8."""
        return self.to(dtype=taeda.int8)

    def byte(self) -> PackedSequence:
        """Cast the data to uint8."""
        return self.to(dtype=taeda.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data lies on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data lies in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: MaybeTensor) -> MaybeTensor:
    """The permutation that undoes a permutation; None of None.

    Example:
        >>> taeda.nn.utils.rnn.invert_permutation(taeda.tensor([1, 2, 0]))
        tensor([2, 0, 1])
    """
    if permutation is None:
        return None
    places = taeda.arange(0, permutation.numel(), device=permutation.device)
    return taeda.empty_like(permutation).scatter_(0, permutation, places)


def _by_length(input, lengths, dim):
    """Both by falling length, and the order that makes them so."""
    lengths, order = lengths.sort(descending=True)
    order = order.to(input.device)
    return input.index_select(dim, order), lengths, order


def pack_padded_sequence(
    input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    Args:
        input (Tensor): (T, N, ...), or (N, T, ...) with `batch_first`.
        lengths: list or tensor (on the CPU) of N lengths.
        batch_first: see `input`.
        enforce_sorted: lengths must fall; otherwise they are sorted here.

    Raises:
        RuntimeError: lengths that do not fall, or are not above 0.

    Example:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 0.0]])
        >>> f = taeda.nn.utils.rnn.pack_padded_sequence
        >>> f(x, [2, 1], batch_first=True).data
        tensor([1., 3., 2.])
    """
    place = lengths.device if isinstance(lengths, Tensor) else "cpu"
    lengths = taeda.as_tensor(lengths, dtype=taeda.int64, device=place)
    order = None
    if not enforce_sorted:
        input, lengths, order = _by_length(input, lengths, 0 if batch_first else 1)
    data, sizes = native("_pack_padded_sequence")(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: MaybeInt = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`.

    Args:
        sequence: what to unpack.
        batch_first: (N, T, ...) rather than (T, N, ...).
        padding_value: put after the end of shorter sequences.
        total_length: T; default the longest length.

    Returns:
        (Tensor, Tensor): the padded batch in its first order, and the lengths.

    Raises:
        ValueError: `total_length` below the longest length.

    Example:
        >>> packed = taeda.nn.utils.rnn.pack_sequence([taeda.ones(2), taeda.ones(1)])
        >>> taeda.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1., 1.],
                [1., 0.]]), tensor([2, 1]))
    """
    longest = sequence.batch_sizes.size(0)
    total = longest if total_length is None else total_length
    if total < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence "
            f"in input, but got total_length={total} and max sequence length being "
            f"{longest}"
        )
    data, sizes, _, back = sequence
    unpack = native("_pad_packed_sequence")
    padded, lengths = unpack(data, sizes, batch_first, padding_value, total)
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(
    sequences,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of different lengths, padding the shorter ones.

    Args:
        sequences: iterable of (length, ...) tensors.
        batch_first: (N, T, ...) rather than (T, N, ...).
        padding_value: what is put there.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: `sequences` is not iterable.

    Example:
        >>> x = [taeda.ones(2), taeda.ones(1)]
        >>> taeda.nn.utils.rnn.pad_sequence(x, batch_first=True)
        tensor([[1., 1.],
                [1., 0.]])
    """
    if not hasattr(type(sequences), "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    pad = native("pad_sequence")
    return pad(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence` (of padding at the right).

    Example:
        >>> x = taeda.tensor([[1.0, 2.0], [3.0, 0.0]])
        >>> taeda.nn.utils.rnn.unpad_sequence(x, taeda.tensor([2, 1]), True)
        [tensor([1., 2.]), tensor([3.])]
    """
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(batch, lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences.

    Args:
        sequences: (length, ...) tensors.
        enforce_sorted: lengths must fall; otherwise they are sorted here.

    Example:
        >>> taeda.nn.utils.rnn.pack_sequence([taeda.ones(2)]).batch_sizes
        tensor([1, 1])
    """
    lengths = taeda.as_tensor([t.size(0) for t in sequences])
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list that was packed.

    Example:
        >>> packed = taeda.nn.utils.rnn.pack_sequence([taeda.ones(2), taeda.ones(1)])
        >>> taeda.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1., 1.]), tensor([1.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
