"""Dims by name: `rearrange`."""

from __future__ import annotations

import re
from functools import lru_cache

import taeda

__all__ = ["rearrange"]

_TOKEN = re.compile(r"\s*(\.\.\.|[()]|\d+|[^\W\d]\w*)")
_DOTS = "..."


def _groups(side: str, where: str) -> list:
    """One side of a pattern: for each dim the names in it; `...` for hidden dims."""
    found: list = []
    inner: list[str] | None = None
    at, side = 0, side.rstrip()
    while at < len(side):
        match = _TOKEN.match(side, at)
        if match is None:
            raise ValueError(f"{where}: unexpected {side[at:].strip()!r}")
        token, at = match[1], match.end()
        if token == "(" and inner is None:
            inner = []
            found.append(inner)
        elif token == ")" and inner is not None:
            inner = None
        elif token in "()":
            raise ValueError(f"{where}: parentheses do not nest, and come in pairs")
        elif token.isdigit() and token != "1":
            raise ValueError(f"{where}: of numbers only 1 can stand for a dim")
        elif inner is not None:
            inner.append(token)
        else:
            found.append(token if token == _DOTS else [token])
    if inner is not None:
        raise ValueError(f"{where}: a parenthesis is not closed")
    named = sum(name != "1" for group in found if group != _DOTS for name in group)
    if named + found.count(_DOTS) != len(_names(found)):
        raise ValueError(f"{where}: a name stands twice in {side.strip()!r}")
    return found


@lru_cache(256)
def _plan(pattern: str, dims: int, given: frozenset):
    """(groups on the left, groups on the right), with names for the dims of `...`."""
    where = f"rearrange({pattern!r})"
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"{where}: expected two sides with one -> between them")
    before, after = _groups(left, where), _groups(right, where)
    dotted = _DOTS in before
    if not dotted and _DOTS in _names(before):
        raise ValueError(f"{where}: on the left ... stands outside of parentheses")
    if odd := _names(before) ^ _names(after):
        raise ValueError(f"{where}: {', '.join(sorted(odd))} stands on one side only")
    hidden = dims - sum(group != _DOTS for group in before)
    if hidden < 0 or (hidden and not dotted):
        raise ValueError(f"{where}: the tensor has {dims} dims")
    if unknown := given - _names(before):
        raise ValueError(f"{where}: got a length of {', '.join(sorted(unknown))}")
    # No name of a pattern begins with a digit.
    rest = [f"0{i}" for i in range(hidden)]
    return _spread(before, rest), _spread(after, rest)


def _names(side) -> set[str]:
    groups = ([group] if group == _DOTS else group for group in side)
    return {name for group in groups for name in group if name != "1"}


def _spread(side, rest: list[str]) -> list[list[str]]:
    """A side with the names of the hidden dims in the place of `...`."""
    found = []
    for group in side:
        if group == _DOTS:
            found += [[name] for name in rest]
        else:
            inner = [rest if name == _DOTS else [name] for name in group]
            found.append([name for names in inner for name in names])
    return found


def rearrange(tensor, pattern: str, **axes_lengths: int):
    """Reorder, split and join the dims of a tensor by their names (Rogozhnikov, 2022).

    Args:
        tensor (Tensor): or a sequence of tensors, which are stacked along a first dim.
        pattern: names of the dims, `->`, and the same names in another order. What
            stands in parentheses is one dim of the tensor, `1` one of size 1, `...`
            all dims that are not named.
        axes_lengths: sizes of names, where they do not follow.

    Raises:
        ValueError: a pattern that is none, or that does not fit the tensor.

    Example:
        >>> taeda.func.rearrange(taeda.zeros(2, 12), "b (h w) -> h b w", w=4).shape
        taeda.Size([3, 2, 4])
    """
    if not isinstance(tensor, taeda.Tensor):
        tensor = taeda.stack(tuple(tensor))
    before, after = _plan(pattern, tensor.dim(), frozenset(axes_lengths))
    sizes = dict(axes_lengths)
    shape: list[int] = []
    for size, group in zip(tensor.shape, before, strict=True):
        shape += _split(size, group, sizes, pattern)
    order = [name for group in before for name in group]
    places = {name: i for i, name in enumerate(order) if name != "1"}
    kept = tensor.reshape(shape).permute(
        [places[n] for group in after for n in group if n != "1"]
        + [i for i, name in enumerate(order) if name == "1"]
    )
    result = []
    for group in after:
        product = 1
        for name in group:
            product *= 1 if name == "1" else sizes[name]
        result.append(product)
    return kept.reshape(result)


def _split(size: int, group: list[str], sizes: dict, pattern: str) -> list[int]:
    """The sizes of the names that share a dim; one of them may follow from the rest."""
    known, open_name = 1, None
    for name in group:
        if name == "1":
            continue
        if name in sizes:
            known *= sizes[name]
        elif open_name is None:
            open_name = name
        else:
            raise ValueError(
                f"rearrange({pattern!r}): give the length of {open_name} or {name}"
            )
    if open_name is not None and known and size % known == 0:
        sizes[open_name] = size // known
        known = size
    if known != size:
        raise ValueError(
            f"rearrange({pattern!r}): a dim of size {size} is not ({' '.join(group)}) "
            f"with {sizes}"
        )
    return [1 if name == "1" else sizes[name] for name in group]
