"""What tests of masked functions ask for by PyTorch's private names."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._functions import dims_of as _canonical_dim
from ._identity import has_identity, identity, input_mask

__all__ = ["_canonical_dim", "_input_mask", "_output_mask", "_reduction_identity"]


def _reduction_identity(op_name: str, input: Tensor, *args) -> Tensor | None:
    """What stands for a masked element; None where no one element can.

    Raises:
        NotImplementedError: the dtype has no such value.
    """
    name = op_name.rpartition(".")[2]
    if name == "median":  # which passes over NaN
        dtype = input.dtype if input.is_floating_point() else taeda.float32
        return taeda.tensor(float("nan"), dtype=dtype, device=input.device)
    return identity(name, input, *args) if has_identity(name) else None


def _input_mask(input: Tensor, *args, **kwargs) -> Tensor:
    """The call's mask in the shape of the input."""
    return input_mask(input, kwargs.get("mask"))


def _output_mask(op, input: Tensor, *args, **kwargs) -> Tensor:
    """Where the result of a masked function has seen an element that is not masked."""
    mask = _input_mask(input, *args, **kwargs)
    name = op.__name__
    if name in ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"):
        return mask
    given = args[1:] if name == "norm" else args
    dims = _canonical_dim(given[0] if given else kwargs.get("dim"), input.ndim)
    keepdim = bool(kwargs.get("keepdim", False))
    return taeda.any(mask, dims, keepdim) if dims else mask
