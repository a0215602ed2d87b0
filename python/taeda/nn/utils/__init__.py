"""Clipping, packing, fusing and reparametrizing: tools around modules."""

from __future__ import annotations

# Functions named like their files: importing the files first leaves the functions.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_FILES = {
    "clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_"
        " get_total_norm"
    ),
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": (
        "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval"
        " fuse_linear_bn_weights"
    ),
    "init": "skip_init",
    "memory_format": (
        "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format"
    ),
}
_WHERE = {name: file for file, names in _FILES.items() for name in names.split()}
_MODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")
__all__ = [
    *sorted(_WHERE),
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
]


def __getattr__(name: str):
    from importlib import import_module

    file = _WHERE.get(name)
    if file is not None:
        found = vars(import_module(f"{__name__}.{file}"))
        globals().update((shown, found[shown]) for shown in _FILES[file].split())
        return found[name]
    if name in _MODULES or name in _FILES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *__all__]
