"""What a call with masked tensors does, by the family in the operator's record.

Elements keep the mask, reductions leave masked elements out, and what only moves
elements moves data and mask alike.
"""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._subclasses.carried import (
    bound,
    inner,
    is_elementwise,
    operator_name,
    overloads,
)

from .maskedtensor import MaskedTensor

__all__ = ["call"]


def call(func, args: tuple, kwargs: dict):
    """Compute a call that has masked tensors among its arguments."""
    name = operator_name(func)
    rule = _RULES.get(name)
    if rule is not None:
        return rule(func, *args, **kwargs)
    known = overloads(name)
    if not known or kwargs.get("out") is not None:
        return NotImplemented
    fits = bound(name, args, kwargs)
    overload = fits[0] if fits else known[0]
    # `positive` returns its argument, and refuses what masks are.
    if is_elementwise(overload) or name == "positive":
        return _elementwise(func, name, args, kwargs)
    if overload.record.family == "reduction" and fits:
        return _reduce(name, fits[1])
    if _moves(overload):
        return _both(func, args, kwargs)
    return NotImplemented


def _masked(values) -> list:
    found = []
    for v in values:
        if isinstance(v, MaskedTensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += _masked(v)
    return found


def _moves(overload) -> bool:
    """Whether results are elements of the arguments: views, and maps that only read."""
    record = overload.record
    if record.family == "view" or overload.is_view:
        return True
    texts = [e.text for e in record.expressions if e.role == "element"]
    return bool(texts) and all(t.startswith("self[") for t in texts)


def _elementwise(func, name: str, args: tuple, kwargs: dict):
    present = _masked((*args, *kwargs.values()))
    mask = present[0]._masked_mask
    for other in present[1:]:
        same = other._masked_mask
        if mask.shape != same.shape or not taeda.equal(mask, same):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an "
                "issue on Github."
            )
    named = {k: inner(v) for k, v in kwargs.items()}
    found = func(*inner(tuple(args)), **named)
    if name.endswith("_"):
        return args[0]
    return _around(found, mask)


def _around(found, mask):
    if isinstance(found, (list, tuple)):
        masks = mask if isinstance(mask, (list, tuple)) else [mask] * len(found)
        parts = [_around(f, m) for f, m in zip(found, masks, strict=True)]
        return tuple(parts) if isinstance(found, list) else type(found)(parts)
    if not isinstance(found, Tensor):
        return found
    return MaskedTensor._around(found, mask.expand_as(found))


def _both(func, args: tuple, kwargs: dict):
    """The same move of data and mask."""

    def mask_of(value):
        if isinstance(value, MaskedTensor):
            return value._masked_mask
        if type(value) in (list, tuple):
            return type(value)(map(mask_of, value))
        return value

    named = {k: inner(v) for k, v in kwargs.items()}
    found = func(*inner(tuple(args)), **named)
    masks = {k: mask_of(v) for k, v in kwargs.items()}
    return _around(found, func(*map(mask_of, args), **masks))


def _reduce(name: str, named: dict):
    """The function of `taeda.masked`; a result is there if one element was."""
    masked, mask = named["self"], named["self"]._masked_mask
    dim, keepdim = named.get("dim"), named.get("keepdim", False)
    data = masked._masked_data
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        there = mask.any()
        there = there.reshape([1] * mask.ndim) if keepdim else there
    else:
        there = taeda.any(mask, dim, keepdim)
    if name in ("all", "any"):
        filled = data.masked_fill(~mask, name == "all")
        where = () if dim is None else (dim, keepdim)
        return MaskedTensor._around(getattr(taeda, name)(filled, *where), there)
    function = getattr(taeda.masked, name, None)
    if function is None:
        return NotImplemented
    options = {
        k: named[k]
        for k in ("dim", "keepdim", "dtype", "unbiased", "correction")
        if named.get(k) is not None
    }
    if named.get("p") is not None:
        options["ord"] = named["p"]
    return MaskedTensor._around(function(data, mask=mask, **options), there)


def _softmax(func, input, dim, *args, **kwargs):
    named = {"dtype": kwargs.get("dtype") or (args[-1] if args else None)}
    function = getattr(taeda.masked, operator_name(func))
    mask = input._masked_mask
    return MaskedTensor._around(function(input._inner, dim, mask=mask, **named), mask)


def _copied(func, self, *args, **kwargs):
    """A copy of the data, or a tensor of its sizes, with the same mask."""
    found = func(self._inner, *args, **kwargs)
    return MaskedTensor._around(found, self._masked_mask.to(found.device))


def _where(func, condition, input, other):
    """Elements, and whether they are there, of the one or the other."""
    condition = inner(condition)

    def of(value):
        if isinstance(value, MaskedTensor):
            return value._masked_mask
        return taeda.ones_like(condition)

    found = taeda.where(condition, inner(input), inner(other))
    return MaskedTensor._around(found, taeda.where(condition, of(input), of(other)))


def _joined(func, tensors, *args, **kwargs):
    def mask_of(t):
        if isinstance(t, MaskedTensor):
            return t._masked_mask
        return taeda.ones_like(t, dtype=taeda.bool)

    found = func(inner(list(tensors)), *args, **kwargs)
    masks = func([mask_of(t) for t in tensors], *args, **kwargs)
    return MaskedTensor._around(found, masks)


def _index(func, self, index):
    return _both(func, (self, index), {})


# Operators that are made of others, or whose records do not say what they move.
_RULES = {
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    **dict.fromkeys(
        (
            "clone contiguous to _to_copy ones_like zeros_like double float half long"
            " int short bool cpu cuda"
        ).split(),
        _copied,
    ),
    **dict.fromkeys(("cat", "stack"), _joined),
    **dict.fromkeys(
        "split chunk unbind reshape flatten unflatten narrow t movedim".split(),
        lambda func, *args, **kwargs: _both(func, args, kwargs),
    ),
    "__getitem__": _index,
    "where": _where,
}
