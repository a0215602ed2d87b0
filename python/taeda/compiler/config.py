"""Settings of compilation.

Each is an attribute of this module: `config.recompile_limit = 16`, or
`with config.patch(recompile_limit=16):`. Those of capture are the same as in
`taeda._dynamo.config`, which says what they do.

    force_disable_caches   False  kernels are compiled anew, and not kept in files
    cache_key_tag          ""     part of what kernels are found by in files
    emulate_precision_casts False kernels round the result of each call that is of 16
                                  bits, as eager calls do, in place of computing on
                                  in float32; read when a graph is compiled
    dynamic_sources        ""     names of inputs as guards have them (`L['x']`) whose
                                  sizes or numbers are symbols at once; or patterns
                                  that their beginnings match, parted by commas
    unbacked_sources       ""     the same; of tensors, symbols that nothing may depend
                                  on, of numbers those of dynamic_sources

TORCH_COMPILE_FORCE_DISABLE_CACHES=1, TORCHINDUCTOR_FORCE_DISABLE_CACHES=1,
TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1, TORCH_COMPILE_CACHE_KEY_TAG,
TORCH_COMPILE_DYNAMIC_SOURCES and TORCH_COMPILE_UNBACKED_SOURCES set these where the
program starts.
"""

from __future__ import annotations

import os
import sys

from taeda.compiler._config import Together, settings_module

_OFF = ("TORCH_COMPILE_FORCE_DISABLE_CACHES", "TORCHINDUCTOR_FORCE_DISABLE_CACHES")
_CASTS = "TORCHINDUCTOR_EMULATE_PRECISION_CASTS"
_OWN = {
    "cache_key_tag": os.environ.get("TORCH_COMPILE_CACHE_KEY_TAG", ""),
    "dynamic_sources": os.environ.get("TORCH_COMPILE_DYNAMIC_SOURCES", ""),
    "emulate_precision_casts": os.environ.get(_CASTS) == "1",
    "unbacked_sources": os.environ.get("TORCH_COMPILE_UNBACKED_SOURCES", ""),
    "force_disable_caches": any(os.environ.get(name) == "1" for name in _OFF),
}
_VALUES = Together(
    _OWN,
    "taeda._dynamo.config",
    "assume_static_by_default automatic_dynamic_shapes capture_scalar_outputs"
    " capture_dynamic_output_shape_ops fail_on_recompile_limit_hit recompile_limit",
)
_FIXED = {
    "accumulated_recompile_limit": 256,
    "allow_unspec_int_on_nn_module": False,
    "dynamic_shapes": True,
    "dynamic_values": "",
    "enable_cpp_symbolic_shape_guards": True,
    "force_cudagraph_gc": False,
    "job_id": None,
    "log_file_name": None,
    "pgo_extra_read_key": None,
    "pgo_extra_write_key": None,
    "reorderable_logging_functions": set(),
    "skip_tensor_guards_with_matching_dict_tags": True,
    "verbose": True,
    "wrap_top_frame": False,
}


def _changed(name: str, value) -> None:
    if name.endswith("_sources") or name == "emulate_precision_casts":
        return  # each capture reads them
    if name in _OWN:
        from taeda import _compiler

        used = not _OWN["force_disable_caches"]
        _compiler.configure_cache(used, _OWN["cache_key_tag"])
    else:
        from taeda._dynamo import config

        config._changed(name, value)


settings_module(sys.modules[__name__], _VALUES, _changed, None, _FIXED)
