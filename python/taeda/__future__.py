"""Ways of `Module.to` and of loading that programs choose for the whole process.

Thread rule: each is one attribute, set and read under the interpreter's lock.
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether a module that is converted gets new parameters.

    By default the parameters stay the objects that they are and get new memory, where
    that is possible.
    """
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What `set_overwrite_module_params_on_conversion` set; False at first."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether a conversion, or loading, exchanges parameters by `utils.swap_tensors`.

    So the objects stay even where the new tensors are of another class.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """What `set_swap_module_params_on_conversion` set; False at first."""
    return _swap_module_params_on_conversion
