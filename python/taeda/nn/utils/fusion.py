"""Batch normalization folded into the layer before it, for inference."""

from __future__ import annotations

import copy

import taeda

from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _folded(weight, bias, mean, var, eps, bn_weight, bn_bias, shape):
    """(weight, bias) with w' = w g, b' = (b - mean) g + beta, g = gamma / deviation."""
    bias = taeda.zeros_like(mean, dtype=weight.dtype) if bias is None else bias
    bn_weight = taeda.ones_like(mean) if bn_weight is None else bn_weight
    bn_bias = taeda.zeros_like(mean) if bn_bias is None else bn_bias
    factor = bn_weight * taeda.rsqrt(var + eps)
    new_weight = (weight * factor.reshape(shape)).to(dtype=weight.dtype)
    new_bias = ((bias - mean) * factor + bn_bias).to(dtype=bias.dtype)
    grad = (weight.requires_grad, bias.requires_grad)
    return Parameter(new_weight, grad[0]), Parameter(new_bias, grad[1])


def fuse_conv_bn_weights(
    conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that does what it and a batch norm do.

    Args:
        conv_w, conv_b: the convolution's; the bias may be None.
        bn_rm, bn_rv, bn_eps: running mean and variance, and what is added to it.
        bn_w, bn_b: the batch norm's; None is 1 and 0.
        transpose: whether the convolution is a transposed one.

    Example:
        >>> one = taeda.ones(1)
        >>> f = taeda.nn.utils.fuse_conv_bn_weights
        >>> w, b = f(taeda.ones(1, 1, 1), None, one, one * 4, 0.0, None, None)
        >>> w.item(), b.item()
        (0.5, -0.5)
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b
) -> tuple[Parameter, Parameter]:
    """`fuse_conv_bn_weights` for a linear layer."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _check(layer, bn) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Only support fusing batch norms with running statistics")


def _statistics(bn):
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A copy of `conv` that does what `conv` and then `bn` do.

    Raises:
        AssertionError: one of them is in training mode, or `bn` has no statistics.

    Example:
        >>> conv, bn = taeda.nn.Conv1d(1, 2, 1).eval(), taeda.nn.BatchNorm1d(2).eval()
        >>> taeda.nn.utils.fuse_conv_bn_eval(conv, bn)
        Conv1d(1, 2, kernel_size=(1,), stride=(1,))
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    weights = (fused.weight, fused.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        *weights, *_statistics(bn), transpose=transpose
    )
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A copy of `linear` that does what `linear` and then `bn` do.

    Raises:
        AssertionError: one of them is in training mode, `bn` has no statistics, or
            its features are neither the layer's nor 1.

    Example:
        >>> linear, bn = taeda.nn.Linear(1, 2).eval(), taeda.nn.BatchNorm1d(2).eval()
        >>> taeda.nn.utils.fuse_linear_bn_eval(linear, bn)
        Linear(in_features=1, out_features=2, bias=True)
    """
    _check(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    fused = copy.deepcopy(linear)
    weights = (fused.weight, fused.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(*weights, *_statistics(bn))
    return fused
