"""Timing statements, comparing and fuzzing."""

from __future__ import annotations

from taeda._lazy import attributes

_NAMES = {
    "common": "Measurement TaskSpec ordered_unique select_unit set_torch_threads"
    " trim_sigfig unit_to_english",
    "compare": "Colorize Compare",
    "fuzzer": "FuzzedParameter FuzzedTensor Fuzzer ParameterAlias",
    "sparse_fuzzer": "FuzzedSparseTensor",
    "timer": "Language Timer timer",
    "callgrind": "CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts",
}
_WHERE = {
    n: f"utils.{module}" for module, names in _NAMES.items() for n in names.split()
}
__all__ = list(_WHERE)

__getattr__ = attributes(__name__, _WHERE, ("utils",))
