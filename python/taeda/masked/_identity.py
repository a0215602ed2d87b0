"""What stands in for a masked element: the identity of a reduction, by its record."""

from __future__ import annotations

from functools import cache
from math import inf

import taeda
from taeda import Tensor

__all__ = ["filled", "has_identity", "identity", "identity_text", "input_mask", "parts"]

# Functions whose masked elements are those of another operator's reduction: scans and
# normalisations fold as they go, places are found by the values at them.
_REDUCES_AS = {
    "argmax": "amax",
    "argmin": "amin",
    "max": "amax",
    "min": "amin",
    "softmax": "amax",
    "log_softmax": "amax",
    "softmin": "amin",
    "cumsum": "sum",
    "cumprod": "prod",
    "normalize": "sum",
    "norm": "linalg_vector_norm",
    "logaddexp": "logsumexp",
}

# Reductions of several accumulators whose first one's beginning is such an element.
_LED_BY_FIRST = frozenset(("logsumexp", "logaddexp"))


@cache
def _inits(name: str) -> tuple:
    """The first accumulator of a reduction's record: (kind, choice, text)."""
    packet = getattr(taeda.ops.aten, _REDUCES_AS.get(name, name), None)
    if packet is None:
        return ()
    record = getattr(packet, packet.overloads()[0]).record
    # What a count finishes is no reduction of values alone.
    if any(e.role == "finish" and "count" in e.text for e in record.expressions):
        return ()
    inits = [e for e in record.expressions if e.role == "init"]
    first = [e for e in inits if e.accumulator == inits[0].accumulator]
    # With several accumulators the first one's beginning need not be an element that
    # changes nothing: a variance counts it.
    if len(first) < len(inits) and name not in _LED_BY_FIRST:
        return ()
    return tuple((e.kind, getattr(e, "choice", None), e.text) for e in first)


@cache
def _refuses_complex(name: str) -> bool:
    packet = getattr(taeda.ops.aten, _REDUCES_AS.get(name, name))
    kinds = getattr(packet, packet.overloads()[0]).record.expressions
    return {e.kind for e in kinds if e.role == "map"} == {"int", "float"}


def _fits(choice: str | None, order) -> bool:
    """Whether a choice such as `ord: == -inf` takes an order."""
    if choice is None:
        return True
    condition = choice.partition(": ")[2]
    if not condition.startswith("== "):
        return True
    return float(condition[3:]) == order


def identity_text(name: str, kind: str, order=2.0) -> str | None:
    """The text of the identity in the record; None where there is none."""
    fitting = [(k, text) for k, choice, text in _inits(name) if _fits(choice, order)]
    return dict(reversed(fitting)).get(kind, fitting[0][1] if fitting else None)


def has_identity(name: str) -> bool:
    """Whether one element can stand for a masked one, whatever the input is."""
    return bool(_inits(name))


def _kind(dtype) -> str:
    if dtype.is_complex:
        return "complex"
    return "float" if dtype.is_floating_point else "int"


def identity(name: str, data: Tensor, order=2.0) -> Tensor:
    """The element that changes no result of a reduction, as a tensor without dims.

    Raises:
        NotImplementedError: the reduction has none among the dtype's values.
    """
    dtype = data.dtype
    text = identity_text(name, _kind(dtype), order)
    bounds = {"lowest": -inf, "-inf": -inf, "highest": inf, "inf": inf}
    bound = bounds.get(text and text.removeprefix("complex(").removesuffix(")"))
    unordered = dtype == taeda.bool or (dtype.is_complex and _refuses_complex(name))
    if text is None or (bound is not None and unordered):
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    value = float(text) if bound is None else bound
    if bound is not None and _kind(dtype) == "int":
        limits = taeda.iinfo(dtype)
        value = limits.min if bound < 0 else limits.max
    return taeda.tensor(value, dtype=dtype, device=data.device)


def parts(input: Tensor, mask: Tensor | None) -> tuple:
    """An argument's data and mask; a MaskedTensor has a mask of its own."""
    own = getattr(input, "_masked_mask", None)
    if own is None:
        return input, mask
    both = own if mask is None else own & input_mask(input._masked_data, mask=mask)
    return input._masked_data, both


def input_mask(input: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask in the shape of the input.

    Raises:
        ValueError: there is none.
        IndexError: it has more dims than the input.
    """
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher "
            "than of the input)"
        )
    if mask.layout != taeda.strided:
        mask = mask.to_dense()
    return taeda.broadcast_to(mask, input.shape).to(dtype=taeda.bool)


def filled(name: str, input: Tensor, mask: Tensor | None, order=2.0) -> Tensor:
    """The data with the identity of a reduction where the mask is False."""
    data, mask = parts(input, mask)
    if data.layout != taeda.strided:
        raise ValueError(
            f"masked {name} expects strided tensor (got {data.layout} tensor)"
        )
    if mask is None:
        return data
    return taeda.where(input_mask(data, mask), data, identity(name, data, order))
