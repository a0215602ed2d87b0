"""Convolution weights in another memory format."""

from __future__ import annotations

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = [
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
]


def _convert(module, memory_format, kinds):
    for layer in module.modules():
        if isinstance(layer, kinds):
            weight = layer.weight.detach().clone()
            layer.weight.data = weight.contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Put the weights of all 2-d convolutions into `memory_format`.

    Args:
        module: a convolution, or a module with some below; changed in place.
        memory_format: such as `taeda.channels_last`.

    Example:
        >>> conv = taeda.nn.Conv2d(2, 2, 2)
        >>> f = taeda.nn.utils.convert_conv2d_weight_memory_format
        >>> f(conv, taeda.channels_last).weight.stride()
        (8, 1, 4, 2)
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """`convert_conv2d_weight_memory_format` for 3-d convolutions."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
