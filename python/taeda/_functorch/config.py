"""Settings of joint graphs, by PyTorch's names.

    activation_memory_budget   1.0   the part of what the backward pass needs that is
                                     kept from the forward pass; below it more is
                                     computed again, at 0.0 all that can be. Graphs
                                     that are made afterwards follow it.

The others have one value here: compiled programs share their buffers, are kept in
files, and do not look whether results of custom operators are views of their arguments
(`library.opcheck` does). Setting another value warns that it changes nothing. `patch`
is a context and a decorator, as in `taeda.compiler.config`.
"""

from __future__ import annotations

import sys

from taeda.compiler._config import settings_module

_VALUES = {"activation_memory_budget": 1.0}
_FIXED = {
    "check_custom_op_aliasing": False,
    "cse": True,
    "debug_assert": False,
    "donated_buffer": True,
    "enable_autograd_cache": True,
    "error_on_custom_op_aliasing": False,
    "fake_tensor_allow_meta": True,
    "fake_tensor_allow_unsafe_data_ptr_access": True,
    "fake_tensor_crossref": False,
    "fake_tensor_propagate_real_tensors": False,
    "functionalize_rng_ops": False,
    "recompute_views": True,
    "static_weight_shapes": True,
    "strict_autograd_cache": False,
    "view_replay_for_aliased_outputs": True,
}


def _changed(name: str, value) -> None:
    if not 0 <= value <= 1:
        _VALUES[name] = 1.0
        raise ValueError(f"{__name__}.{name}: must be in [0, 1], got {value}")


settings_module(sys.modules[__name__], _VALUES, _changed, None, _FIXED)
