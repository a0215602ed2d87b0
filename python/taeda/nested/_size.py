"""Where the entries of a nested tensor begin and end, and the ragged size."""

from __future__ import annotations

from itertools import count

from taeda import Tensor

__all__ = ["NestedInt", "Ragged"]

# Numbers of ragged sizes; taking one is a single step under the interpreter's lock.
_numbers = count(1)
# No tensor can have such a size, so that native code that meets it raises.
_NO_SIZE = -(2**62)


class NestedInt(int):
    """The size of a ragged dim, shown as `j1`; equal to itself alone.

    Args:
        number: which raggedness it is the size of.
        factor: a number that it is multiplied by (in strides).

    Raises:
        ValueError: it is compared with what it may be smaller or larger than.
        TypeError: its number is asked for; the entries have several.
    """

    def __new__(cls, number: int, factor: int = 1):
        made = super().__new__(cls, _NO_SIZE)
        made._key = (number, factor)
        return made

    def __repr__(self) -> str:
        number, factor = self._key
        return f"j{number}" if factor == 1 else f"{factor}*j{number}"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(repr(self), form)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other) -> bool:
        return isinstance(other, NestedInt) and self._key == other._key

    def __ne__(self, other) -> bool:
        return not self == other

    def __ge__(self, other) -> bool:
        if isinstance(other, NestedInt) and self._key[0] == other._key[0]:
            return self._key[1] >= other._key[1]
        if not isinstance(other, NestedInt) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __lt__(self, other) -> bool:
        return not self >= other

    def __le__(self, other) -> bool:
        if isinstance(other, NestedInt):
            return other >= self
        if other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other) -> bool:
        return not self <= other

    def __mul__(self, other):
        if isinstance(other, NestedInt) or not isinstance(other, int):
            return NotImplemented
        return NestedInt(self._key[0], self._key[1] * other)

    __rmul__ = __mul__

    def _no_number(self, *args):
        raise TypeError(f"the ragged size {self!r} is no single number")

    __int__ = __index__ = __float__ = __add__ = __radd__ = __sub__ = _no_number
    __rsub__ = __floordiv__ = __mod__ = __neg__ = __truediv__ = _no_number


class Ragged:
    """The entries along a ragged dim: where they begin, and their lengths.

    Args:
        offsets: int64, of one element more than there are entries.
        lengths: of the entries where there are holes between them, else None.
        size: the size of another device's copy of the same raggedness.
    """

    __slots__ = ("_known", "_starts", "lengths", "offsets", "size")

    def __init__(
        self, offsets: Tensor, lengths: Tensor | None = None, size=None
    ) -> None:
        self.offsets, self.lengths = offsets, lengths
        # One size for one tensor of offsets, whoever asks first.
        source = offsets if lengths is None else lengths
        fresh = size or NestedInt(next(_numbers))
        self.size = vars(source).setdefault("_ragged_size", fresh)
        self._known: list | None = None
        self._starts: Tensor | None = None

    def __len__(self) -> int:
        return self.offsets.shape[0] - 1

    def spans(self) -> list[tuple[int, int]]:
        """Begin and length of each entry."""
        if self._known is None:
            begins = self.offsets.tolist()
            if self.lengths is None:
                lengths = [b - a for a, b in zip(begins, begins[1:], strict=False)]
            else:
                lengths = self.lengths.tolist()
            self._known = list(zip(begins, lengths, strict=False))
        return self._known

    def starts(self) -> Tensor:
        """The offsets in 32 bits, as kernels of attention read them."""
        if self._starts is None:
            self._starts = self.offsets.int()
        return self._starts

    def longest(self) -> int:
        return max((length for _, length in self.spans()), default=0)

    def to(self, device):
        """The same raggedness on another device."""
        if self.offsets.device == device:
            return self
        lengths = None if self.lengths is None else self.lengths.to(device)
        return Ragged(self.offsets.to(device), lengths, self.size)
