"""Boxes of a tensor: where they meet, and whether they cover it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["faults", "overlap", "pairs"]


def overlap(saved, wanted) -> tuple[list, list, list] | None:
    """The box that two boxes share.

    Args:
        saved, wanted: with `offsets` and `sizes` in the same tensor.

    Returns:
        Where it begins within `saved` and within `wanted`, and its lengths; None if
        they share nothing.
    """
    inside_saved, inside_wanted, lengths = [], [], []
    sides = zip(saved.offsets, saved.sizes, wanted.offsets, wanted.sizes, strict=True)
    for a, a_length, b, b_length in sides:
        begin = max(a, b)
        length = min(a + a_length, b + b_length) - begin
        if length <= 0:
            return None
        inside_saved.append(begin - a)
        inside_wanted.append(begin - b)
        lengths.append(length)
    return inside_saved, inside_wanted, lengths


def _longest(boxes: Sequence) -> int:
    """The dimension that is cut into most places."""
    dims = range(len(boxes[0].offsets))
    return max(dims, key=lambda d: len({b.offsets[d] for b in boxes}), default=-1)


def _span(box, dim: int) -> tuple[int, int]:
    if dim < 0:  # a tensor without dimensions has one element
        return 0, 1
    return box.offsets[dim], box.offsets[dim] + box.sizes[dim]


def pairs(first: Sequence, second: Sequence) -> Iterable[tuple[int, int]]:
    """Indices of boxes in two lists that may meet.

    Boxes are sorted along one dimension and forgotten once they have ended, so many
    boxes side by side cost n log n.
    """
    if not first or not second:
        return
    dim = _longest([*first, *second])
    events = sorted(
        (*_span(box, dim), side, i)
        for side, boxes in enumerate((first, second))
        for i, box in enumerate(boxes)
    )
    open_boxes: tuple[list, list] = [], []
    for begin, end, side, i in events:
        other = open_boxes[1 - side]
        other[:] = [entry for entry in other if entry[0] > begin]
        for _, j in other:
            yield (i, j) if side == 0 else (j, i)
        open_boxes[side].append((end, i))


def faults(size: Sequence[int], boxes: Sequence, complete: bool = True) -> list[str]:
    """What is wrong with boxes that should cover a tensor once.

    Args:
        size: of the tensor. complete (bool): they must cover it wholly.
    """
    found, volume = [], 0
    for box in boxes:
        sides = zip(box.offsets, box.sizes, size, strict=True)
        if any(o < 0 or n < 0 or o + n > whole for o, n, whole in sides):
            found.append(f"a chunk out of bounds: tensor-size:{size} chunk: {box}")
        volume += _product(box.sizes)
    for i, j in pairs(boxes, boxes):
        if i < j and overlap(boxes[i], boxes[j]):
            found.append(f"overlapping chunks: {boxes[i]} {boxes[j]}")
    whole = _product(size)
    if complete and volume != whole:
        found.append(f"invalid fill tensor-volume: {whole} chunks-volume: {volume}")
    return found


def _product(values: Iterable[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result
