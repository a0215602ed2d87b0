"""What reading one file may cost.

A file's author decides what is built from it, so work and memory are counted against
an allowance that grows with the file. It is spent and never given back: it bounds the
bytes that have been written, and with them the time.
"""

from __future__ import annotations

from _pickle import UnpicklingError

# A load may take this much, and _TIMES the size of its file. A list of ten million
# different integers needs more: such files need weights_only=False.
FLOOR = 256 << 20
_TIMES = 3
# What one element costs that is looked at, hashed or compared: mostly time.
ELEMENT = 32


class Allowance:
    """Bytes that are left for one load.

    Args:
        size (int): of the file. trusted (bool): nothing is refused.
    """

    def __init__(self, size: int, trusted: bool = False) -> None:
        self.size, self.trusted = size, trusted
        self.left = float("inf") if trusted else FLOOR + _TIMES * size

    def spend(self, count: int) -> None:
        """Take `count` bytes.

        Raises:
            UnpicklingError: fewer are left.
        """
        self.left -= count
        if self.left < 0:
            raise UnpicklingError(
                f"this file of {self.size} bytes needs more memory than a data-only "
                f"load takes, {FLOOR} bytes and {_TIMES} times the file: the file is "
                "damaged or hostile (weights_only=False has no such limit, but runs "
                "code in the file)"
            )


def short(value, most: int = 60) -> str:
    """A value in a message. Printing what a file contains may take for ever."""
    kind = type(value)
    if kind in (str, bytes):
        return repr(value[:most]) + ("..." if len(value) > most else "")
    if kind is int and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    if kind in (int, float, complex, bool, type(None)):
        return repr(value)
    if kind in (tuple, list) and len(value) <= 64:
        if all(type(item) is int and item.bit_length() <= 64 for item in value):
            return repr(value)
    if isinstance(value, type):
        return f"class {value.__name__}"[:most]
    return f"a value of type {kind.__name__}"[:most]
