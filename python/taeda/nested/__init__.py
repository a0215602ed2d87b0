"""Nested tensors: a batch whose entries differ in the size of one dim."""

from __future__ import annotations

from taeda._lazy import attributes

# Names that live in submodules, by submodule.
_LAZY_NAMES = {
    "_construct": (
        "nested_tensor as_nested_tensor nested_tensor_from_jagged narrow masked_select"
    ),
    "_padding": "to_padded_tensor",
}
_WHERE = {n: module for module, names in _LAZY_NAMES.items() for n in names.split()}
__all__ = sorted(_WHERE)

__getattr__ = attributes(__name__, _WHERE)


def __dir__():
    return sorted({*globals(), *_WHERE})
