"""The order of a tensor's dims in memory, and whether there is just one."""

from __future__ import annotations

from itertools import pairwise

import taeda

__all__ = ["check_dim_order", "dim_order"]


def check_dim_order(tensor, wanted) -> None:
    """Refuses a tensor whose dims have several orders; see `Tensor.dim_order`."""
    formats = () if isinstance(wanted, bool) else wanted
    if not isinstance(formats, list | tuple) or (
        formats is wanted and not isinstance(formats, list)
    ):
        raise _no_check(wanted)
    if not all(isinstance(form, taeda.memory_format) for form in formats):
        raise _no_check(wanted)
    if wanted is False or not _is_ambiguous(tensor):
        return
    fitting = [f for f in formats if tensor.is_contiguous(memory_format=f)]
    if len(fitting) != 1:
        among = "" if wanted is True else ", or cannot map to exact one of the given"
        raise RuntimeError(
            f"The tensor does not have unique dim order{among}"
            f"{'' if wanted is True else ' memory formats'}. dim_order: shape "
            f"{tuple(tensor.shape)}, strides {tensor.stride()}"
        )


def _no_check(wanted) -> TypeError:
    return TypeError(
        "The ambiguity_check argument must be a bool or a list of memory formats."
        f" dim_order: got {wanted!r}"
    )


def _is_ambiguous(tensor) -> bool:
    strides = tensor.stride()
    if 1 in tensor.shape or len(strides) < 2:
        return 1 in tensor.shape
    if tensor.numel() == 0:
        return any(a == b for a, b in pairwise(strides))
    return 0 in strides or len(set(strides)) < len(strides)


def dim_order(tensor) -> tuple[int, ...]:
    """The dims from the outermost in memory to the innermost.

    A stride of 0 says nothing: such a dim stays behind the dim before it. Of equal
    strides the larger size lies outside.
    """
    sizes, strides = tensor.shape, tensor.stride()
    last = {4: taeda.channels_last, 5: taeda.channels_last_3d}.get(len(sizes))
    either = last is not None and tensor.is_contiguous(memory_format=last)
    if tensor.is_contiguous() and not either:
        return tuple(range(len(sizes)))
    order = list(reversed(range(len(sizes))))  # from the innermost
    for start in range(1, len(order)):
        at = start
        for before in reversed(range(start)):
            inner, dim = order[before], order[at]
            if 0 in (strides[inner], strides[dim]):
                continue
            theirs, ours = ((strides[d], sizes[d]) for d in (inner, dim))
            if ours < theirs:
                order[before], order[at] = dim, inner
                at = before
            elif ours[0] > theirs[0]:
                break
    return tuple(reversed(order))
