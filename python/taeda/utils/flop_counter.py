"""Counts the floating-point operations of products, by module and operator."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from contextlib import ExitStack
from math import prod

import taeda
from taeda._ops import OpOverloadPacket
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map
from taeda.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

# Formulas by packet of overloads. Written by register_flop_formula alone, when modules
# are imported; a counter takes a copy as it is made.
flop_registry: dict = {}


def get_shape(value):
    """A tensor's shape; other values as they are."""
    return value.shape if isinstance(value, taeda.Tensor) else value


def _of_shapes(formula):
    """A formula of shapes as one of the call's values."""

    @functools.wraps(formula)
    def counted(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return counted


def register_flop_formula(targets, get_raw: bool = False):
    """A decorator that gives operators a formula.

    Args:
        targets: a packet of overloads (`taeda.ops.aten.mm`), or nested lists of them.
        get_raw: whether the formula takes the call's values with the result as
            `out_val`; else shapes in place of tensors, the result's as `out_shape`.

    Raises:
        ValueError: a target is no packet.
        RuntimeError: a target has a formula.

    Example:
        >>> @register_flop_formula(taeda.ops.aten.dot)
        ... def dot_flop(a, b, *args, out_shape=None, **kwargs):
        ...     return 2 * a[0]
    """

    def register(formula):
        counted = formula if get_raw else _of_shapes(formula)

        def add(target):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be "
                    "OpOverloadPacket (i.e. torch.ops.mylib.foo), got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted

        tree_map(add, targets)
        return counted

    return register


# Formulas ----------------------------------------------------------------------------
# A product of [m, k] and [k, n] counts k products and k sums for each of m * n results.

_aten = taeda.ops.aten


@register_flop_formula(_aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """Of [m, k] by [k, n]."""
    (m, k), (rows, n) = a_shape, b_shape
    if k != rows:
        raise AssertionError(f"matmul: inner dimensions must match, got {k} and {rows}")
    return 2 * m * k * n


@register_flop_formula(_aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of the product alone."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(_aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of a batch of products."""
    if a_shape[0] != b_shape[0]:
        raise AssertionError(
            f"bmm: batch dimensions must match, got {a_shape[0]} and {b_shape[0]}"
        )
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(_aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Of the products alone."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed: bool = False) -> int:
    """Of one convolution without bias.

    Every element of the weight meets every place of the output once; of the input
    where it is transposed.

    Args:
        x_shape: input [batch, channels, ...].
        w_shape: weight, channels first.
        out_shape: output [batch, channels, ...].
        transposed: whether it spreads inputs instead of gathering them.
    """
    places = prod((x_shape if transposed else out_shape)[2:])
    return 2 * x_shape[0] * places * prod(w_shape)


@register_flop_formula([_aten.convolution, _aten._convolution])
def conv_flop(
    x_shape,
    w_shape,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    *args,
    out_shape=None,
    **kwargs,
) -> int:
    """Of a forward convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _turned(shape) -> list:
    """The shape with batch and channels exchanged."""
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(_aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape,
    x_shape,
    w_shape,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
    out_shape=None,
    **kwargs,
) -> int:
    """Of the gradients that are asked for: each is a convolution itself.

    That of the input is the other kind of convolution of the result's gradient by the
    weight; that of the weight one of input and gradient by each other, with batch and
    channels exchanged.
    """
    count = 0
    if output_mask[0]:
        count += conv_flop_count(
            grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed
        )
    if output_mask[1]:
        moving, fixed = x_shape, grad_out_shape
        if transposed:
            moving, fixed = fixed, moving
        count += conv_flop_count(
            _turned(moving), _turned(fixed), _turned(get_shape(out_shape[1]))
        )
    return count


def sdpa_flop_count(query_shape, key_shape, value_shape) -> int:
    """Of attention [batch, heads, places, width]: scores, and values by them.

    Key and value may have fewer heads, which divide those of the query. A mask makes
    no difference.
    """
    batch, heads, places, width = query_shape
    _, own, others, out = value_shape
    fits = key_shape == (batch, own, others, width) and value_shape[0] == batch
    if not fits or heads % own != 0:
        raise AssertionError(
            "sdpa_flop_count: query/key/value shapes are incompatible: "
            f"q={query_shape}, k={key_shape}, v={value_shape}"
        )
    return 2 * batch * heads * places * others * (width + out)


def sdpa_flop(
    query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs
) -> int:
    """Of attention forward."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape, query_shape, key_shape, value_shape
) -> int:
    """Of attention's gradients: the scores again, and two products for each of two."""
    batch, heads, places, width = query_shape
    others, out = key_shape[2], value_shape[3]
    if grad_out_shape[3] != out:
        raise AssertionError(
            f"sdpa_backward: the gradient {grad_out_shape} does not fit v={value_shape}"
        )
    return 2 * batch * heads * places * others * (3 * width + 2 * out)


def sdpa_backward_flop(
    grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs
) -> int:
    """Of attention backward."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# Not as decorators: programs give the functions themselves as `custom_mapping`.
_attention = "_scaled_dot_product_efficient_attention"
register_flop_formula(getattr(_aten, _attention))(sdpa_flop)
register_flop_formula(getattr(_aten, f"{_attention}_backward"))(sdpa_backward_flop)


def _lengths(starts, count: int, longest: int) -> list[int]:
    """Of each sequence; the longest's where there are no values to read."""
    if starts.device.type == "meta":
        return [longest] * count
    return starts.diff().tolist()


def _sequence_shapes(
    query, key, value, starts, key_starts, longest, longest_key, used=None
) -> list[tuple]:
    """Query, key and value of each sequence, as `sdpa_flop_count` takes them."""
    (heads, width), (own, out) = query.shape[-2:], value.shape[-2:]
    if starts is None or starts.numel() == 0:
        batch, places = query.shape[:2]
        others = key.shape[1]
        pairs, count = [(places, others)], batch
    else:
        count = starts.shape[0] - 1
        keys = [longest_key] * count
        if used is not None and used.device.type != "meta":
            keys = used.tolist()
        elif used is None and key_starts is not None:
            keys = _lengths(key_starts, count, longest_key)
        pairs = list(zip(_lengths(starts, count, longest), keys, strict=True))
        count = 1
    return [
        ((count, heads, l, width), (count, own, s, width), (count, own, s, out))
        for l, s in pairs
    ]


def _flash_attention_flop(
    query, key, value, starts, key_starts, longest, longest_key, *args, **kwargs
) -> int:
    """Of attention over sequences; masks are not counted off."""
    lengths = starts, key_starts, longest, longest_key, kwargs.get("seqused_k")
    return sum(
        sdpa_flop_count(*shapes)
        for shapes in _sequence_shapes(query, key, value, *lengths)
    )


def _flash_attention_backward_flop(
    grad_out, query, key, value, out, logsumexp, *lengths, **kwargs
) -> int:
    """Of its gradients."""
    found = _sequence_shapes(query, key, value, *lengths[:4])
    return sum(sdpa_backward_flop_count((*q[:3], v[3]), q, k, v) for q, k, v in found)


register_flop_formula(_aten._flash_attention_forward, get_raw=True)(
    _flash_attention_flop
)
register_flop_formula(_aten._flash_attention_backward, get_raw=True)(
    _flash_attention_backward_flop
)

# The counter -------------------------------------------------------------------------

_SUFFIXES = ("", "K", "M", "B", "T")


def _suffix_for(count) -> str:
    """So that the table's largest number has two to four digits before the point."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(count)) - 2) // 3))]


def _with_suffix(count, suffix: str) -> str:
    return f"{count / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def _percent(count, total) -> str:
    return "0%" if total == 0 else f"{count / total:.2%}"


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    """A table of text: the first column to the left, the others to the right."""
    widths = [
        max(len(name) + 2, *(len(row[i]) for row in rows))
        for i, name in enumerate(header)
    ]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


class _Counting(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        named = kwargs or {}
        out = func(*args, **named)
        formula = self.counter.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **named, out_val=out)
            for name in self.counter.mod_tracker.parents:
                self.counter.flop_counts[name][func.overloadpacket] += count
        return out


class FlopCounterMode:
    """A context that counts what products, convolutions and attention compute.

    What is counted is what registered formulas say of the operators below autograd:
    matrix products, convolutions, a GPU's attention and their gradients. The CPU's
    fused attention has, as in PyTorch, no formula; `custom_mapping` may give it
    `sdpa_flop`.

    Args:
        mods: ignored; modules are found by themselves.
        depth: how deep a table goes into modules.
        display: whether the table is printed at the end.
        custom_mapping: formulas by packet, besides those registered.

    Example:
        >>> with FlopCounterMode(display=False) as counter:
        ...     y = taeda.ones(2, 3) @ taeda.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self,
        mods=None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it",
                stacklevel=2,
            )
        self.flop_counts: dict = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        own = custom_mapping or {}
        self.flop_registry = flop_registry | {
            target: f if getattr(f, "_get_raw", False) else _of_shapes(f)
            for target, f in own.items()
        }
        self.mod_tracker = ModuleTracker()
        self._entered = ExitStack()

    def get_total_flops(self) -> int:
        """The operations of everything inside the context."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """The operations by name of the module ("Global" for all) and by packet."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def _rows(self, name: str, depth: int) -> list[list[str]]:
        counts, total = self.flop_counts[name], self.get_total_flops()
        suffix = _suffix_for(total)
        entries = [(name, sum(counts.values()))]
        entries += [(f" - {packet}", count) for packet, count in counts.items()]
        return [
            [" " * depth + text, _with_suffix(count, suffix), _percent(count, total)]
            for text, count in entries
        ]

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, modules no deeper than `depth` (the counter's own).

        The whole has a row where no module has done it all.
        """
        deepest = depth if depth is not None else self.depth
        total, whole, rows = self.get_total_flops(), False, []
        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name == "Global" or (deepest is not None and level > deepest):
                continue
            rows += self._rows(name, level - 1)
            whole = whole or sum(self.flop_counts[name].values()) >= total
        if "Global" in self.flop_counts and not whole:
            inner = [[" " + text, *rest] for text, *rest in rows]
            rows = self._rows("Global", 0) + inner
        return _aligned(["Module", "FLOP", "% Total"], rows)

    def __enter__(self):
        self.flop_counts.clear()
        with ExitStack() as entered:
            entered.enter_context(self.mod_tracker)
            entered.enter_context(_Counting(self))
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *exception) -> None:
        self._entered.__exit__(*exception)
        if self.display:
            print(self.get_table())
