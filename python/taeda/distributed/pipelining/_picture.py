"""A picture of a schedule: a row for each rank, a square for each slot."""

from __future__ import annotations

import os
import struct
import zlib

from ._table import Action, Kind, Table

__all__ = ["draw"]

# Red, green, blue: forwards, backwards, their parts for inputs and for weights.
_COLOURS = {
    Kind.FORWARD: (90, 140, 210),
    Kind.FULL_BACKWARD: (95, 170, 105),
    Kind.BACKWARD_INPUT: (70, 185, 185),
    Kind.BACKWARD_WEIGHT: (225, 175, 75),
}
_WAITING = 245, 245, 245
_WIDE, _HIGH, _GAP = 14, 22, 2
# Digits of 3 by 5 dots, a row of dots in each group of three bits.
_DIGITS = (
    0b111101101101111,
    0b010110010010111,
    0b111001111100111,
    0b111001111001111,
    0b101101111001001,
    0b111100111001111,
    0b111100111101111,
    0b111001001001001,
    0b111101111101111,
    0b111101111001111,
)


class _Canvas:
    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.rows = [bytearray(b"\xff" * 3 * width) for _ in range(height)]

    def fill(self, x: int, y: int, width: int, height: int, colour: tuple) -> None:
        for row in self.rows[y : y + height]:
            row[3 * x : 3 * (x + width)] = bytes(colour) * width

    def number(self, x: int, y: int, value: int) -> None:
        """A number of up to three digits, by its upper left corner."""
        for digit in str(value)[-3:]:
            for dot in range(15):
                if _DIGITS[int(digit)] >> (14 - dot) & 1:
                    self.fill(x + dot % 3, y + dot // 3, 1, 1, (30, 30, 30))
            x += 4

    def png(self) -> bytes:
        """The file; see www.w3.org/TR/png."""
        size = struct.pack(">IIBBBBB", self.width, len(self.rows), 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in self.rows))
        parts = (b"IHDR", size), (b"IDAT", pixels), (b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts
        )


def _square(canvas: _Canvas, x: int, y: int, action: Action, stages: int) -> None:
    parts = action.parts()
    high = _HIGH // len(parts)
    for i, part in enumerate(parts):
        # Later stages are darker.
        shade = 1 - 0.35 * part.stage_index / max(1, stages - 1)
        colour = _COLOURS[part.computation_type]
        place = x, y + i * high, _WIDE, high
        canvas.fill(*place, tuple(int(c * shade) for c in colour))
        canvas.number(x + 2, y + i * high + (high - 5) // 2, part.microbatch_index)


def draw(table: Table, path: str | os.PathLike) -> None:
    """Writes a schedule to a PNG file, micro-batches as numbers.

    Args:
        table: a schedule's `pipeline_order`. path: of the file.

    Example:
        >>> draw(schedule.pipeline_order, "schedule.png")
    """
    slots = max(map(len, table.values()))
    across, down = _WIDE + _GAP, _HIGH + _GAP
    canvas = _Canvas(slots * across + _GAP, len(table) * down + _GAP)
    actions = [part for row in table.values() for a in row if a for part in a.parts()]
    stages = 1 + max((part.stage_index for part in actions), default=0)
    for rank, row in sorted(table.items()):
        for slot in range(slots):
            x, y = _GAP + slot * across, _GAP + rank * down
            action = row[slot] if slot < len(row) else None
            if action is None:
                canvas.fill(x, y, _WIDE, _HIGH, _WAITING)
            else:
                _square(canvas, x, y, action, stages)
    with open(path, "wb") as file:
        file.write(canvas.png())
