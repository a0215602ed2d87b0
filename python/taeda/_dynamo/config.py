"""Settings of graph capture.

Each is an attribute of this module: `config.recompile_limit = 16`, or
`with config.patch(recompile_limit=16):`.

    recompile_limit        8      how often one place of a function is captured anew;
                                  what fits none of these runs as it is written
    error_on_recompile     False  capturing a function again is a RecompileError
    fail_on_recompile_limit_hit False  reaching that limit is an error
    suppress_errors        False  where a backend raises, the graph runs as captured
    disable                False  compiled functions run as they are written
    cache_size_limit              another name of recompile_limit
    automatic_dynamic_shapes True  a size or number that differs between two captures is
                                  a symbol from then on
    assume_static_by_default True  sizes are not symbols before that
    specialize_int, specialize_float  False  numbers never are symbols
    force_parameter_static_shapes, force_nn_module_property_static_shapes  True
                                  sizes of parameters, and what modules hold, never are
    capture_scalar_outputs False  `item()` is part of a graph, its number a symbol
    capture_dynamic_output_shape_ops False  so are `nonzero`, `unique` and masks, their
                                  sizes symbols
    compiled_autograd      False  backward passes inside of functions compiled from then
                                  on are captured whole (`compiled_autograd.py`)

The names under `_FIXED` are those of PyTorch's that programs set and that have one
value here; another value is warned of.
"""

from __future__ import annotations

import os
import sys

from taeda.compiler._config import settings_module

_VALUES = {
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": True,
    "capture_dynamic_output_shape_ops": False,
    "capture_scalar_outputs": False,
    "compiled_autograd": False,
    "force_nn_module_property_static_shapes": True,
    "force_parameter_static_shapes": True,
    "specialize_float": False,
    "specialize_int": False,
    "disable": os.environ.get("TORCH_COMPILE_DISABLE") == "1",
    "error_on_recompile": False,
    "fail_on_recompile_limit_hit": False,
    "recompile_limit": 8,
    "suppress_errors": False,
}
_ALIASES = {"cache_size_limit": "recompile_limit"}
_FIXED = {
    "accumulated_recompile_limit": 256,
    "allow_unspec_int_on_nn_module": False,
    "guard_nn_modules": True,
    "inline_inbuilt_nn_modules": True,
    "optimize_ddp": False,
    "skip_nnmodule_hook_guards": False,
    "trace_numpy": False,
    "verbose": True,
}


def _changed(name: str, value) -> None:
    capture = sys.modules.get("taeda._capture")
    if capture is not None:
        hand_over(capture)


def hand_over(capture) -> None:
    """Tells `_capture` the settings that it follows."""
    from taeda.compiler._stance import effective

    capture.configure("recompile_limit", _VALUES["recompile_limit"])
    capture.configure("stance", effective())


settings_module(sys.modules[__name__], _VALUES, _changed, _ALIASES, _FIXED)
