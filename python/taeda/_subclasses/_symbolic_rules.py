"""Shapes of operators over symbols, for those that fix symbols in C++.

Each rule computes the results of one operator from stand-ins; values do not matter.
What has no rule here is computed by its record's rule, or with all symbols fixed.
"""

from __future__ import annotations

import functools

import taeda
from taeda.utils import _pytree as pytree

__all__ = ["has_symbols", "rule_of", "symbolic_getitem", "tensor_indices"]


def has_symbols(values) -> bool:
    """Whether a number is symbolic, or a size of a tensor."""
    for value in pytree.tree_leaves(values):
        sizes = value.shape if isinstance(value, taeda.Tensor) else (value,)
        if any(isinstance(n, taeda.SymInt) for n in sizes):
            return True
    return False


# Indexing -----------------------------------------------------------------------


def _is_symbolic_key(key) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    found = False
    for item in items:
        bounds = (item,)
        if isinstance(item, slice):
            bounds = (item.start, item.stop, item.step)
        for bound in bounds:
            if isinstance(bound, (taeda.Tensor, list, tuple, bool)):
                return False
            found = found or isinstance(bound, taeda.SymInt)
    return found


def symbolic_getitem(tensor, key):
    """`tensor[key]` as views, where a bound or an index is a symbol; else None."""
    if not _is_symbolic_key(key):
        return None
    aten = taeda.ops.aten
    items = key if isinstance(key, tuple) else (key,)
    used = sum(item is not None and item is not ... for item in items)
    if used > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    skipped, dim, out = tensor.dim() - used, 0, tensor
    for item in items:
        if item is ...:
            dim += skipped
        elif item is None:
            out = out.unsqueeze(dim)
            dim += 1
        elif isinstance(item, slice):
            if item != slice(None):
                step = 1 if item.step is None else item.step
                out = aten.slice.Tensor(out, dim, item.start, item.stop, step)
            dim += 1
        else:
            out = aten.select.int(out, dim, item)
    return out


def tensor_indices(tensor, key):
    """The indices of `tensor[key]` where they are tensors and `:` over symbols."""
    items = key if isinstance(key, tuple) else (key,)
    tensors = [item for item in items if isinstance(item, taeda.Tensor)]
    others = [item for item in items if not isinstance(item, taeda.Tensor)]
    simple = all(isinstance(o, slice) and o == slice(None) for o in others)
    if not tensors or not simple or not has_symbols((tensor, tensors)):
        return None
    return [item if isinstance(item, taeda.Tensor) else None for item in items]


def _broadcast(shapes) -> list:
    rank = max(map(len, shapes), default=0)
    sizes: list = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if not (isinstance(n, int) and n == 1):
                sizes[i] = n
    return sizes


def _index(x, indices):
    if any(t is not None and t.dtype in (taeda.bool, taeda.uint8) for t in indices):
        mode = getattr(x, "fake_mode", None)
        return NotImplemented if mode is None else mode.masked(x, indices)
    indices = [*indices, *[None] * (x.dim() - len(indices))]
    places = [i for i, t in enumerate(indices) if t is not None]
    chosen = _broadcast([indices[i].shape for i in places])
    rest = [n for i, n in enumerate(x.shape) if i not in places]
    together = places == list(range(places[0], places[0] + len(places)))
    at = places[0] if together else 0
    return x.new_empty([*rest[:at], *chosen, *rest[at:]])


# Sums of products ---------------------------------------------------------------


def _einsum(equation: str, tensors, *, path=None):
    text = equation.replace(" ", "")
    if "." in text:
        return NotImplemented
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if not arrow:
        output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    sizes: dict = {}
    for term, t in zip(terms, tensors, strict=True):
        for letter, n in zip(term, t.shape, strict=True):
            if letter in sizes and not _is_one(n) and not _is_one(sizes[letter]):
                taeda._check(
                    sizes[letter] == n, lambda: f"einsum: {equation} of {sizes}"
                )
            if letter not in sizes or not _is_one(n):
                sizes[letter] = n
    return tensors[0].new_empty([sizes[letter] for letter in output])


def _is_one(n) -> bool:
    return isinstance(n, int) and n == 1


# Sequences ----------------------------------------------------------------------


def _recurrent(input, hx, params, has_biases, num_layers, dropout, train, both, first):
    hidden = hx[0] if isinstance(hx, (list, tuple)) else hx
    width = hidden.shape[-1] * (2 if both else 1)
    out = input.new_empty([*input.shape[:2], width])
    if not isinstance(hx, (list, tuple)):
        return out, hidden.new_empty(hidden.shape)
    return (out, *(h.new_empty(h.shape) for h in hx))


def _one_hot(x, num_classes: int = -1):
    if num_classes < 0:
        return NotImplemented
    return x.new_empty([*x.shape, num_classes], dtype=taeda.int64)


# Kernels ---------------------------------------------------------------------------


def _cast(x, dtype=None, *, device=None, **options):
    if device is not None and taeda.device(device) != x.device:
        return NotImplemented
    return x.new_empty(x.shape, dtype=dtype)


def _like(x, *args, **options):
    return x.new_empty(x.shape)


def _itself(x, *args, **options):
    return x


def _whole(x):
    return x.new_empty([])


def _gathered(x, dim, index, *, sparse_grad=False):
    return x.new_empty(index.shape)


def _logsumexp(x, dim, keepdim=False):
    return x.sum(dim, keepdim)


def _outer(x, y):
    return x.new_empty([*x.shape, *y.shape])


def _linspace(start, end, steps, **options):
    return taeda.empty([steps], **options)


def _drawn(x, count, *args, **options):
    return x.new_empty([*x.shape[:-1], count], dtype=taeda.int64)


@functools.cache
def _rules() -> dict:
    table = {
        "_to_copy.default to.dtype": _cast,
        "einsum.default": _einsum,
        "fill.Scalar fill.Tensor index_put.default": _like,
        "fill_.Scalar fill_.Tensor index_put_.default zero_.default": _itself,
        "gather.default": _gathered,
        "index.Tensor": _index,
        "linspace.default": _linspace,
        "logsumexp.default": _logsumexp,
        "lstm.input gru.input rnn_tanh.input rnn_relu.input": _recurrent,
        "max.default min.default": _whole,
        "multinomial.default": _drawn,
        "outer.default": _outer,
        "scatter.src scatter.value scatter_add.default": _like,
    }
    found = {}
    for names, rule in table.items():
        for name, overload in (text.split(".") for text in names.split()):
            packet = getattr(taeda.ops.aten, name, None)
            if overload in getattr(packet, "overloads", list)():
                found[getattr(packet, overload)] = rule
    return found


def rule_of(op, args, kwargs):
    """The rule of an operator for these arguments, or None."""
    if op is taeda.ops.aten.one_hot.default:
        return _one_hot
    rule = _rules().get(op)
    return rule if rule is not None and has_symbols((args, kwargs)) else None
