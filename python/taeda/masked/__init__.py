"""Functions of tensors some of whose elements are masked out."""

from __future__ import annotations

from taeda._lazy import attributes

# Names that live in submodules, by submodule.
_LAZY_NAMES = {
    "_functions": (
        "sum prod cumsum cumprod amax amin argmax argmin median logsumexp logaddexp"
        " norm softmax log_softmax softmin normalize"
    ),
    "_moments": "mean var std",
    "maskedtensor": "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor",
}
_PRIVATE = "_canonical_dim _input_mask _output_mask _reduction_identity"
_WHERE = {n: module for module, names in _LAZY_NAMES.items() for n in names.split()}
__all__ = sorted(_WHERE)
_WHERE |= dict.fromkeys(_PRIVATE.split(), "_sample_masks")

__getattr__ = attributes(__name__, _WHERE, frozenset(("maskedtensor",)))


def __dir__():
    return sorted({*globals(), *__all__, "maskedtensor"})
