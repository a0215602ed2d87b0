"""Views and copies whose records name sizes, or nothing, rather than a dim."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._subclasses.carried import operator_name

from ._construct import packed
from ._padding import to_padded_tensor
from ._rules import elementwise, first_nested, inner_dim, require_same
from ._size import NestedInt
from ._tensor import NestedTensor

__all__ = ["RULES"]


def _same_structure(func, self, *args, **kwargs):
    """A copy or a factory of the same sizes, made of the values."""
    kwargs.pop("layout", None)
    if operator_name(func) == "contiguous" or (
        kwargs.get("memory_format") is taeda.contiguous_format
    ):
        if self.lengths() is not None:
            return packed(self.unbind())
    found = func(self._values, *args, **kwargs)
    ragged = self._ragged.to(found.device)
    return NestedTensor(found, ragged, self._ragged_idx)


def _copy_(func, self, src, non_blocking: bool = False):
    if not isinstance(src, NestedTensor):
        raise NotImplementedError("NestedTensor: copy_ of a dense tensor")
    require_same("copy_", self, src)
    self._values.copy_(src._values)
    return self


def _unbind(func, self, dim: int = 0):
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    at = self._ragged_idx - 1
    return tuple(self._values.narrow(at, a, n) for a, n in self._ragged.spans())


def _transpose(func, self, dim0: int, dim1: int):
    order = list(range(self.ndim))
    a, b = (d % self.ndim for d in (dim0, dim1))
    order[a], order[b] = b, a
    if 0 in (a, b) and a != b:
        raise ValueError(
            "Transpose is not supported on the batch dimension for jagged NT"
        )
    return _permuted(self, order)


def _permute(func, self, *dims):
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if len(given) != self.ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({self.ndim}) does "
            "not match the length of the desired ordering of dimensions "
            f"({len(given)})."
        )
    order = [d % self.ndim for d in given]
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise ValueError(
            "Permute is not supported on the batch dimension for jagged NT"
        )
    return _permuted(self, order)


def _permuted(nt: NestedTensor, order: list):
    values = nt._values.permute([d - 1 for d in order[1:]])
    return nt._like(values, order.index(nt._ragged_idx))


def _sizes(shape: tuple) -> list:
    single = len(shape) == 1 and not isinstance(shape[0], int)
    return list(shape[0] if single else shape)


def _inner_sizes(nt: NestedTensor, name: str, sizes: list, verb: str) -> list:
    """Sizes for the values; the batch and the ragged dim must stay in front."""
    front = nt.shape[: nt._ragged_idx + 1]
    kept = sizes[: nt._ragged_idx + 1]
    fits = len(kept) == len(front) and all(
        a == b or (not isinstance(b, NestedInt) and b == -1)
        for a, b in zip(front, kept, strict=True)
    )
    if not fits:
        shown = "[" + ", ".join(map(str, sizes)) + "]"
        link = "->" if verb == "expand" else "as"
        raise RuntimeError(
            f"{name}(): cannot {verb} shape {tuple(nt.shape)} {link} {shown}"
        )
    at = nt._ragged_idx - 1
    width = nt._values.shape[at]
    return [width if i == at else s for i, s in enumerate(sizes[1:])]


def _view(func, self, *shape, **kwargs):
    name = operator_name(func)
    if kwargs or (shape and isinstance(shape[0], taeda.dtype)):
        raise NotImplementedError(f"NestedTensor: {name} of another dtype")
    sizes = _inner_sizes(self, "view", _sizes(shape), "view")
    return self._like(func(self._values, sizes))


def _expand(func, self, *shape):
    sizes = _inner_sizes(self, "expand", _sizes(shape), "expand")
    return self._like(func(self._values, sizes))


def _flatten(func, self, start_dim: int = 0, end_dim: int = -1):
    first = inner_dim(self, start_dim, "flatten")
    last = inner_dim(self, end_dim, "flatten")
    if first < self._ragged_idx - 1 < last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    moved = last - first if last < self._ragged_idx - 1 else 0
    values = func(self._values, first, last)
    return self._like(values, self._ragged_idx - moved)


def _unsqueeze(func, self, dim: int):
    at = inner_dim(self, dim, "unsqueeze", extra=1)
    moved = at <= self._ragged_idx - 1
    return self._like(func(self._values, at), self._ragged_idx + moved)


def _chunk(func, self, chunks: int, dim: int = 0):
    if dim % self.ndim:
        at = inner_dim(self, dim, "chunk")
        return tuple(self._like(v) for v in func(self._values, chunks, at))
    if self.lengths() is not None:
        raise NotImplementedError("NestedTensor: chunk of entries with holes")
    entries = self.unbind()
    size = -(-len(entries) // chunks)
    begins = range(0, len(entries), size)
    return tuple(self._part(b, min(b + size, len(entries))) for b in begins)


def _joined(func, tensors, dim: int = 0, **kwargs):
    """`cat` and `stack` along a dim of the entries."""
    if kwargs:
        raise NotImplementedError(f"NestedTensor: {operator_name(func)} with {kwargs}")
    name, first = operator_name(func), first_nested((tensors,), {})
    if not all(t.is_nested for t in tensors):
        raise NotImplementedError(f"NestedTensor: {name} with dense tensors")
    extra = int(name == "stack")
    at = inner_dim(first, dim, name, extra)
    require_same(name, *tensors)
    moved = extra and at <= first._ragged_idx - 1
    values = func([t._values for t in tensors], at)
    return first._like(values, first._ragged_idx + moved)


def _getitem(func, self, index):
    """`nt[i]` is an entry; other indices stay within the entries."""
    items = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [i for i in items if not isinstance(i, Tensor)]:
        at = items.index(Ellipsis)
        missing = self.ndim - (len(items) - 1)
        items[at : at + 1] = [slice(None)] * missing
    first, rest = items[0], tuple(items[1:])
    if isinstance(first, int):
        count = len(self)
        if not -count <= first < count:
            raise IndexError(
                f"index {first} is out of bounds for dimension 0 with size {count}"
            )
        begin, length = self._ragged.spans()[first % count]
        entry = self._values.narrow(self._ragged_idx - 1, begin, length)
        return entry[rest] if rest else entry
    if first != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    place = self._ragged_idx - 1
    for i, item in enumerate(rest):
        if isinstance(item, bool) or not isinstance(item, (int, slice)):
            raise NotImplementedError(f"NestedTensor: index {item!r}")
        if i == place and item != slice(None):
            name = "slice" if isinstance(item, slice) else "select"
            raise RuntimeError(
                f"{name}(): not supported for NestedTensor on ragged dim"
            )
    moved = sum(isinstance(item, int) for item in rest[:place])
    return self._like(self._values[rest], self._ragged_idx - moved)


def _select(func, self, dim: int, index: int):
    before = (slice(None),) * (dim % self.ndim)
    return _getitem(func, self, (*before, index))


def _padded(func, self, padding, output_size=None):
    return to_padded_tensor(self, padding, output_size)


def _equal(func, self, other):
    same = isinstance(self, NestedTensor) and isinstance(other, NestedTensor)
    return (
        same and self.shape == other.shape and taeda.equal(self._values, other._values)
    )


def _table() -> dict:
    rules = {
        "copy_": _copy_,
        "unbind": _unbind,
        "transpose": _transpose,
        "permute": _permute,
        "view": _view,
        "reshape": _view,
        "expand": _expand,
        "flatten": _flatten,
        "unsqueeze": _unsqueeze,
        "chunk": _chunk,
        "cat": _joined,
        "stack": _joined,
        "__getitem__": _getitem,
        "select": _select,
        "to_padded_tensor": _padded,
        "equal": _equal,
    }
    copies = (
        "clone contiguous to cpu cuda type_as double float half bfloat16 long int short"
        " bool to _to_copy zeros_like ones_like empty_like full_like rand_like"
        " randn_like randint_like alias"
    )
    rules |= dict.fromkeys(copies.split(), _same_structure)
    # Composites of elements, which draw: their records say nothing of axes.
    fills = "dropout dropout_ rrelu"
    return rules | dict.fromkeys(fills.split(), elementwise)


RULES = _table()
