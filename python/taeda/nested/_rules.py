"""What a call with nested tensors does, read from the operator's record.

A pointwise operator is applied to the values; one along a dim to the values along the
dim's place in them; a reduction of the ragged dim to padded entries, where the record
states an identity to pad with, else to each entry. Operators whose record does not
tell (products, views that name sizes) are in `_views` and `_products`.
"""

from __future__ import annotations

from functools import cache

import taeda
from taeda import Tensor
from taeda._subclasses.carried import (
    bound,
    inner,
    is_elementwise,
    operator_name,
    overloads,
    record_of,
)
from taeda.masked._identity import identity

from ._padding import from_padded, padded, rows_of_entries
from ._tensor import NestedTensor

__all__ = ["call", "elementwise", "first_nested", "inner_dim", "require_same"]


def call(func, args: tuple, kwargs: dict):
    """Compute a call that has nested tensors among its arguments."""
    name = operator_name(func)
    rule = _special().get(name)
    if rule is not None:
        return rule(func, *args, **kwargs)
    record = record_of(name)
    if record is None:
        raise NotImplementedError(f"NestedTensor: {name}")
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"NestedTensor: {name} with out=")
    fits = bound(name, args, kwargs)
    if is_elementwise(fits[0] if fits else overloads(name)[0]):
        return elementwise(func, *args, **kwargs)
    if fits is None:
        raise NotImplementedError(f"NestedTensor: {name}: no overload fits the call")
    overload, named = fits
    _require_fitting(overload, named)
    if overload.record.family == "reduction" or _drops_dim(overload):
        return _named_results(name, _reduce(overload, named))
    if "dim" in named:
        return _named_results(name, _along_dim(overload, named))
    raise NotImplementedError(f"NestedTensor: {overload}")


def _require_fitting(overload, named: dict) -> None:
    """`self` is nested; other nested tensors are as ragged, dense ones meet no row."""
    nt = named.get("self")
    if not isinstance(nt, NestedTensor):
        raise NotImplementedError(f"NestedTensor: {overload} of a dense tensor")
    patterns = _axes(overload).partition("->")[0].split(",")
    tensors = [a.name for a in overload._schema.arguments if a.type == "Tensor"]
    for name, pattern in zip(tensors[1:], patterns[1:], strict=False):
        other = named[name]
        if isinstance(other, NestedTensor):
            require_same(overload.__name__, nt, other)
        elif isinstance(other, Tensor) and "*" in pattern:
            raise NotImplementedError(f"NestedTensor: {overload}: dense {name}")


def _named_results(name: str, found):
    """Several results as the named tuple that the operator returns."""
    if type(found) is tuple and name in taeda.return_types.__all__:
        return getattr(taeda.return_types, name)(found)
    return found


# Of elements, too, but made of other operators, so that no record says it.
_COMPOSED = (
    "__rdiv__ __rtruediv__ cdouble cfloat chalf conj mvlgamma positive real tanhshrink"
).split()


@cache
def _special() -> dict:
    from . import _products, _views

    composed = dict.fromkeys(_COMPOSED, elementwise)
    return {**composed, **_views.RULES, **_products.RULES}


@cache
def _axes(overload) -> str:
    """The axes of an operator; of a composite those of its private kernel."""
    twin = record_of("_" + operator_name(overload))
    return overload.record.axes or (twin.axes if twin else None) or ""


def _drops_dim(overload) -> bool:
    return (
        _axes(overload).startswith("* @dim")
        and "* @dim" not in _axes(overload).partition("->")[2]
    )


# Pointwise


def _tensors(values) -> list:
    found = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif isinstance(v, (list, tuple)):
            found += _tensors(v)
    return found


def first_nested(args: tuple, kwargs: dict) -> NestedTensor:
    """The nested tensor of a call that gives its results their raggedness."""
    listed = _tensors((*args, *kwargs.values()))
    return next(t for t in listed if isinstance(t, NestedTensor))


def _same_raggedness(a: NestedTensor, b: NestedTensor) -> bool:
    mine, other = a._ragged, b._ragged
    return (
        a._ragged_idx == b._ragged_idx
        and mine.size == other.size
        and (mine.lengths is None) == (other.lengths is None)
    )


def _mismatch(name: str, a: Tensor, b: Tensor) -> RuntimeError:
    both = a.is_nested and b.is_nested
    first, second = (tuple(a.shape), tuple(b.shape)) if both else (a.shape, b.shape)
    return RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes "
        f"{first} and {second}"
    )


def require_same(name: str, *tensors: NestedTensor) -> None:
    """All have the same raggedness, else RuntimeError."""
    for t in tensors[1:]:
        if not _same_raggedness(tensors[0], t):
            raise _mismatch(name, tensors[0], t)


def _spread(name: str, t: Tensor, nt: NestedTensor) -> Tensor:
    """A dense operand as it meets the values: rows of the batch go to its entries."""
    while t.ndim > 0 and t.shape[0] == 1 and t.ndim > nt.ndim - nt._ragged_idx:
        t = t.squeeze(0)
    at = t.ndim - (nt.ndim - nt._ragged_idx)
    if at < 0 or (t.shape[at] == 1 and t.ndim < nt.ndim):
        return t
    fits = t.ndim == nt.ndim and t.shape[0] == len(nt._ragged)
    if not fits or t.shape[nt._ragged_idx] != 1:
        raise _mismatch(name, nt, t)
    if nt._ragged.lengths is not None:
        raise NotImplementedError(
            f"NestedTensor: {name}: a batch meets entries with holes"
        )
    rows = t.squeeze(nt._ragged_idx).index_select(0, rows_of_entries(nt))
    return rows.movedim(0, nt._ragged_idx - 1)


def elementwise(func, *args, **kwargs):
    """A function of elements, applied to the values."""
    nt = first_nested(args, kwargs)
    fits = bound(operator_name(func), args, kwargs)
    name = fits[0].__name__ if fits else operator_name(func)

    def meet(value):
        if isinstance(value, NestedTensor):
            if value.ndim != nt.ndim:
                raise _mismatch(name, nt, value)
            require_same(name, nt, value)
            return value._values
        if isinstance(value, Tensor):
            return _spread(name, value, nt)
        if type(value) in (list, tuple):
            return type(value)(map(meet, value))
        return value

    found = func(*map(meet, args), **{k: meet(v) for k, v in kwargs.items()})
    if isinstance(args[0] if args else None, NestedTensor) and found is args[0]._values:
        return args[0]
    return wrapped(found, nt)


def wrapped(found, nt: NestedTensor, place: int | None = None):
    """Results over values as nested tensors of the same raggedness."""
    if isinstance(found, Tensor):
        return nt._like(found, place)
    if isinstance(found, (list, tuple)):
        parts = [wrapped(f, nt, place) for f in found]
        return tuple(parts) if isinstance(found, list) else type(found)(parts)
    return found


# Along a dim


def inner_dim(nt: NestedTensor, dim: int, name: str, extra: int = 0) -> int:
    """A dim of the values; the batch and the ragged dim are refused."""
    count = nt.ndim + extra
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, "
            f"{count - 1}], but got {dim})"
        )
    dim %= count
    if dim == nt._ragged_idx and not extra:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return dim - 1


def _canonical(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    return dim % ndim


def _along_dim(overload, named: dict):
    """An operator along one dim that stays, or a view of it."""
    nt, name = named["self"], operator_name(overload)
    dim = _canonical(named["dim"], nt.ndim)
    keeps = _axes(overload).partition("->")[2].strip().startswith("* @dim")
    alone = not any(isinstance(v, Tensor) for k, v in named.items() if k != "self")
    if dim == nt._ragged_idx and keeps and alone:
        return _along_ragged(overload, named)
    if dim == 0 and keeps:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for "
            "NestedTensor"
        )
    at = inner_dim(nt, dim, name)
    found = overload(**{k: inner(v) for k, v in named.items()} | {"dim": at})
    return _with_place(found, nt, at)


def _with_place(found, nt: NestedTensor, at: int):
    """Results of the values; a dim that came or went before the ragged one moves it."""
    first = found if isinstance(found, Tensor) else found[0]
    moved = first.ndim - nt._values.ndim if at < nt._ragged_idx - 1 else 0
    return wrapped(found, nt, nt._ragged_idx + moved)


def _entries(nt: NestedTensor) -> list:
    at = nt._ragged_idx - 1
    return [nt._values.narrow(at, a, n) for a, n in nt._ragged.spans()]


def _along_ragged(overload, named: dict):
    """Entry by entry, or over padded entries where padding changes nothing."""
    nt, at = named["self"], named["self"]._ragged_idx
    name = operator_name(overload)
    if nt._ragged.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across "
            "the ragged dimension for NestedTensor"
        )
    rest = {k: v for k, v in named.items() if k not in ("self", "dim")}
    fill = _fill(name, nt._values)
    if fill is not None:
        found = overload(self=padded(nt, fill), dim=at, **rest)
        return nt._like(from_padded(found, nt._ragged, at))
    found = [overload(self=e, dim=at - 1, **rest) for e in _entries(nt)]
    if isinstance(found[0], Tensor):
        return nt._like(taeda.cat(found, at - 1))
    columns = [nt._like(taeda.cat(c, at - 1)) for c in zip(*found, strict=True)]
    return type(found[0])(columns)


def _fill(name: str, values: Tensor):
    """What entries are padded with; None where the record states no identity."""
    try:
        return identity(name, values)
    except NotImplementedError:
        return None


# Reductions


def _refuse(name: str, text: str) -> RuntimeError:
    return RuntimeError(f"{name}(): reducing {text}")


def _reduce(overload, named: dict):
    """A reduction over all elements, the ragged dim, or dims of the entries."""
    nt, name = named["self"], operator_name(overload)
    dim = named.get("dim")
    listed = isinstance(dim, (list, tuple))
    if dim is None or (listed and len(dim) == 0):
        found = overload(**named | {"self": _without_holes(nt)})
        ones = [1] * nt.ndim
        return (
            _each(found, lambda t: t.reshape(ones)) if named.get("keepdim") else found
        )
    dims = {_canonical(d, nt.ndim) for d in (dim if listed else [dim])}
    over_ragged = nt._ragged_idx in dims
    if over_ragged and nt._ragged.lengths is not None:
        raise _refuse(
            name,
            "across the ragged dimension is not supported for non-contiguous nested "
            "tensors with holes",
        )
    if 0 in dims and not over_ragged:
        raise _refuse(
            name,
            "along the batch dimension but not the ragged dimension is not supported "
            "for nested tensors",
        )
    if over_ragged and 0 not in dims:
        if len(dims) > 1:
            raise _refuse(
                name,
                "along a ragged and non-batch dimension is not supported for nested "
                "tensors",
            )
        return _reduce_ragged(overload, named, listed)
    inside = sorted({(nt._ragged_idx if d == 0 else d) - 1 for d in dims})
    given = named | {"self": nt._values, "dim": inside if listed else inside[0]}
    found = overload(**given)
    if over_ragged:
        keeps = named.get("keepdim")
        return _each(found, lambda t: t.unsqueeze(0)) if keeps else found
    moved = sum(d < nt._ragged_idx - 1 for d in inside)
    place = nt._ragged_idx - (0 if named.get("keepdim") else moved)
    return wrapped(found, nt, place)


def _without_holes(nt: NestedTensor) -> Tensor:
    if nt._ragged.lengths is None:
        return nt._values
    return taeda.cat(_entries(nt), nt._ragged_idx - 1)


def _reduce_ragged(overload, named: dict, listed: bool):
    nt, at = named["self"], named["self"]._ragged_idx
    fill = _fill(operator_name(overload), nt._values)
    if fill is not None:
        dim = [at] if listed else at
        return overload(**named | {"self": padded(nt, fill), "dim": dim})
    rest = named | {"dim": [at - 1] if listed else at - 1}
    found = [overload(**rest | {"self": e}) for e in _entries(nt)]
    if isinstance(found[0], Tensor):
        return taeda.stack(found)
    return type(found[0])([taeda.stack(column) for column in zip(*found, strict=True)])


def _each(found, change):
    if isinstance(found, Tensor):
        return change(found)
    return type(found)([change(f) for f in found])
