"""Dropout: zeroing elements or channels at random while training."""

from __future__ import annotations

from taeda import Tensor

from .._native import native, overrides_one, relay, warn

__name__ = __package__

_element, _element_ = native("dropout"), native("dropout_")
_feature, _feature_ = native("feature_dropout"), native("feature_dropout_")
_alpha, _alpha_ = native("alpha_dropout"), native("alpha_dropout_")
_feature_alpha = native("feature_alpha_dropout")
_feature_alpha_ = native("feature_alpha_dropout_")


def _checked(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p).

    Hinton et al., "Improving neural networks by preventing co-adaptation of feature
    detectors", 2012.

    Args:
        input (Tensor): any shape, floating or complex.
        p: probability of zero.
        training: otherwise the input is returned.
        inplace: write into `input`.

    Raises:
        ValueError: p outside [0, 1].

    Example:
        >>> taeda.nn.functional.dropout(taeda.ones(2), training=False)
        tensor([1., 1.])
    """
    if overrides_one(input):
        return relay(dropout, (input,), locals())
    _checked(p)
    return (_element_ if inplace else _element)(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of what `selu` gives.

    Klambauer et al., "Self-Normalizing Neural Networks", 2017. Arguments and errors
    as `dropout`.

    Example:
        >>> taeda.nn.functional.alpha_dropout(taeda.ones(2))
        tensor([1., 1.])
    """
    if overrides_one(input):
        return relay(alpha_dropout, (input,), locals())
    _checked(p)
    return (_alpha_ if inplace else _alpha)(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels (dimension 1).

    Example:
        >>> taeda.nn.functional.feature_alpha_dropout(taeda.ones(1, 2))
        tensor([[1., 1.]])
    """
    if overrides_one(input):
        return relay(feature_alpha_dropout, (input,), locals())
    _checked(p)
    return (_feature_alpha_ if inplace else _feature_alpha)(input, p, training)


def _channels(input, p, training, inplace, batched):
    """Zero whole channels; an input without batch gets one for the call."""
    if not batched:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = (_feature_ if inplace else _feature)(input, p, training)
    if not batched:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def _odd_rank(name: str, rank: int, wanted: str) -> str:
    return (
        f"{name}: Received a {rank}-D input to {name}; whole channels are dropped from "
        f"{wanted} inputs (with or without batch). Use dropout for single elements."
    )


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L) with probability p.

    Tompson et al., "Efficient Object Localization Using Convolutional Networks",
    2015. Arguments as `dropout`.

    Raises:
        ValueError: p outside [0, 1].
        RuntimeError: input of another rank.

    Example:
        >>> taeda.nn.functional.dropout1d(taeda.ones(1, 2), training=False)
        tensor([[1., 1.]])
    """
    if overrides_one(input):
        return relay(dropout1d, (input,), locals())
    _checked(p)
    rank = input.dim()
    if rank not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. "
            "It drops channels of (N, C, L) or (C, L)."
        )
    return _channels(input, p, training, inplace, rank == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, H, W) with probability p; see `dropout1d`.

    A 3-D input counts as (N, C, L) and warns; other ranks warn too.

    Example:
        >>> taeda.nn.functional.dropout2d(taeda.ones(1, 1, 1, 1), training=False)
        tensor([[[[1.]]]])
    """
    if overrides_one(input):
        return relay(dropout2d, (input,), locals())
    _checked(p)
    rank = input.dim()
    if rank == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d, taken as (N, C, L) for now, "
            "assuming that channel-wise 1D dropout behavior is desired; use dropout1d "
            "for that, a later version reads (C, H, W)"
        )
    elif rank != 4:
        warn(_odd_rank("dropout2d", rank, "3D or 4D"))
    return (_feature_ if inplace else _feature)(input, p, training)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W); see `dropout1d`.

    Example:
        >>> taeda.nn.functional.dropout3d(taeda.ones(1, 1, 1, 1), training=False)
        tensor([[[[1.]]]])
    """
    if overrides_one(input):
        return relay(dropout3d, (input,), locals())
    _checked(p)
    rank = input.dim()
    if rank not in (4, 5):
        warn(_odd_rank("dropout3d", rank, "4D or 5D"))
    return _channels(input, p, training, inplace, rank == 5)
