"""Rows of a table looked up by index."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda._checks import is_collecting, makes_checks, refuse_any

from .._native import native, overrides_any, relay, warn
from .._types import MaybeFloat, MaybeInt, MaybeTensor

__name__ = __package__

_embedding, _embedding_bag = native("embedding"), native("embedding_bag")
_one_hot = native("one_hot")
_renorm = native("embedding_renorm_")
_MODES = {"sum": 0, "mean": 1, "max": 2}


@makes_checks
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One more dim, in which each class is a one among zeros.

    Args:
        tensor (Tensor): int64 classes, any shape.
        num_classes: the size of the new dim; -1 for the largest class and one.

    Returns:
        An int64 tensor of shape (*tensor.shape, num_classes).

    Raises:
        RuntimeError: a class that is negative, or not smaller than `num_classes`;
            another dtype.

    Example:
        >>> taeda.nn.functional.one_hot(taeda.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if overrides_any(tensor):
        return relay(one_hot, (tensor,), locals())
    if is_collecting():  # what runs then has no elements to look at
        text = "one_hot: Class values must be "
        refuse_any(tensor < 0, RuntimeError(f"{text}non-negative"))
        if num_classes > 0:
            small = RuntimeError(f"{text}smaller than num_classes")
            refuse_any(tensor >= num_classes, small)
    return _one_hot(tensor, num_classes)


def padding_row(index: int, rows: int, name: str = "Padding_idx") -> int:
    """`index` counted from the front; 0 is taken of an empty table as well."""
    if 0 <= index < max(rows, 1):
        return index
    if not -rows <= index < 0:
        raise AssertionError(f"{name} must be within num_embeddings")
    return index + rows


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: MaybeInt = None,
    max_norm: MaybeFloat = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """weight[input]: one row of the table for every index.

    Args:
        input (Tensor): int32 or int64 indices, any shape.
        weight (Tensor): (rows, width), floating or complex.
        padding_idx: this row gets no gradient.
        max_norm: rows used are first scaled down, in place, to this norm.
        norm_type: exponent of that norm.
        scale_grad_by_freq: divide a row's gradient by the row's count in `input`.
        sparse: a sparse gradient of `weight`.

    Returns:
        Tensor: the shape of `input` plus (width,).

    Raises:
        AssertionError: `padding_idx` out of range.

    Example:
        >>> table = taeda.eye(3)
        >>> taeda.nn.functional.embedding(taeda.tensor([2, 0]), table)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    if overrides_any(input, weight):
        return relay(embedding, (input, weight), locals())
    skipped = -1 if padding_idx is None else padding_row(padding_idx, weight.size(0))
    if max_norm is not None:
        input = input.contiguous()
        _renorm(weight.detach(), input, max_norm, norm_type)
    return _embedding(weight, input, skipped, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: MaybeTensor = None,
    max_norm: MaybeFloat = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: MaybeTensor = None,
    include_last_offset: bool = False,
    padding_idx: MaybeInt = None,
) -> Tensor:
    """Sum, mean or maximum of table rows over bags of indices, in one pass.

    Args:
        input (Tensor): indices; (bags, length), or 1-D with `offsets`.
        weight (Tensor): (rows, width), floating.
        offsets (Tensor): 1-D, where each bag begins in a 1-D `input`.
        max_norm, norm_type, scale_grad_by_freq, sparse: as for `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights (Tensor): a factor for every index; with "sum" only.
        include_last_offset: `offsets` also has the end of the last bag.
        padding_idx: these entries are left out of their bag.

    Returns:
        Tensor: (bags, width).

    Raises:
        ValueError: shapes or options that do not go together.
        NotImplementedError: `per_sample_weights` with another mode than "sum".

    Example:
        >>> bags = taeda.tensor([[0, 1], [2, 2]])
        >>> taeda.nn.functional.embedding_bag(bags, taeda.eye(3), mode="sum")
        tensor([[1., 1., 0.],
                [0., 0., 2.]])
    """
    if overrides_any(input, weight, offsets, per_sample_weights):
        return relay(
            embedding_bag, (input, weight, offsets, per_sample_weights), locals()
        )
    if weight.dtype == taeda.int64 and input.is_floating_point():
        warn("embedding_bag(weight, input, ...) is deprecated, pass input first")
        weight, input = input, weight
    _check_bag(input, weight, offsets, per_sample_weights)
    _check_mode(mode, scale_grad_by_freq, sparse)
    if input.dim() == 2:
        include_last_offset = False
        input, offsets, per_sample_weights = _flat_bags(input, per_sample_weights)
    if max_norm is not None:
        _renorm(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')"
        )
    return _embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _check_bag(input, weight, offsets, factors) -> None:
    if factors is not None and input.size() != factors.size():
        raise ValueError(
            f"embedding_bag: per_sample_weights ({factors.shape}) must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    rank = input.dim()
    if rank == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None: each row is a bag. "
                f"However, found offsets of type {type(offsets)}"
            )
    elif rank != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {rank}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")


def _check_mode(mode, scale_grad_by_freq, sparse) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")


def _flat_bags(input, factors):
    """Bags as rows -> indices in one line, with the begin of each bag."""
    kind = {"dtype": input.dtype, "device": input.device}
    offsets = taeda.arange(0, input.numel(), input.size(1), **kind)
    return input.reshape(-1), offsets, None if factors is None else factors.reshape(-1)
