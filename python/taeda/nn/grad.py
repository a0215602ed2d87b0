"""Gradients of convolutions with respect to one argument."""

from __future__ import annotations

import taeda

from .modules.utils import _ntuple

__all__ = [f"conv{d}d_{of}" for d in (1, 2, 3) for of in ("input", "weight")]


def _backward(d, of, input, weight, grad_output, stride, padding, dilation, groups):
    spread = _ntuple(d)
    window = (spread(stride), spread(padding), spread(dilation))
    rest = (False, [0] * d, groups, [of == 0, of == 1, False])
    gradients = taeda.ops.aten.convolution_backward
    return gradients(grad_output, input, weight, None, *window, *rest)[of]


def _of_input(d: int):
    def gradient(
        input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1
    ):
        input = grad_output.new_empty(1).expand(input_size)
        window = (stride, padding, dilation, groups)
        return _backward(d, 0, input, weight, grad_output, *window)

    gradient.__name__ = gradient.__qualname__ = f"conv{d}d_input"
    gradient.__doc__ = f"""The gradient of `conv{d}d` with respect to its input.

    Args:
        input_size: shape of the input.
        weight, grad_output (Tensor): the weight, and the output's gradient.
        stride, padding, dilation, groups: those of the convolution.
    """
    return gradient


def _of_weight(d: int):
    def gradient(
        input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1
    ):
        weight = grad_output.new_empty(1).expand(weight_size)
        window = (stride, padding, dilation, groups)
        return _backward(d, 1, input, weight, grad_output, *window)

    gradient.__name__ = gradient.__qualname__ = f"conv{d}d_weight"
    gradient.__doc__ = f"""The gradient of `conv{d}d` with respect to its weight.

    Args:
        input (Tensor): the input.
        weight_size: shape of the weight.
        grad_output (Tensor): the output's gradient.
        stride, padding, dilation, groups: those of the convolution.
    """
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (1, 2, 3))
