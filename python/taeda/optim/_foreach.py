"""Helpers that optimizers outside of the library share with PyTorch's own."""

from __future__ import annotations

__all__ = ["default_to_fused_or_foreach", "group_tensors"]


def group_tensors(lists: list[list], with_indices: bool = False) -> dict:
    """Splits parallel lists of tensors by the first list's devices and dtypes.

    Args:
        lists: lists of one length; entries after the first may be None.
        with_indices: also give each entry's place in the lists.

    Returns:
        (device, dtype) -> (the lists' parts, places).
    """
    groups: dict = {}
    full = [row or [None] * len(lists[0]) for row in lists]
    for place, entries in enumerate(zip(*full, strict=True)):
        first = next(entry for entry in entries if entry is not None)
        key = (first.device, first.dtype)
        parts, places = groups.setdefault(key, ([[] for _ in lists], []))
        for part, row, entry in zip(parts, lists, entries, strict=False):
            if row:
                part.append(entry)
        if with_indices:
            places.append(place)
    return groups


def default_to_fused_or_foreach(
    params: list, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which way of stepping to take for parameters on the CPU: (fused, foreach)."""
    fused = bool(use_fused) and not differentiable
    fused = fused and all(p is None or p.is_floating_point() for p in params)
    return fused, False
