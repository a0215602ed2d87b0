"""Products, reductions and settings of sparse tensors."""

from __future__ import annotations

from taeda._C import _sparse as _natives
from taeda._lazy import attributes

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

mm = _natives._sparse_mm
addmm = _natives._sparse_addmm
sampled_addmm = _natives.sparse_sampled_addmm

_WHERE = {
    "as_sparse_gradcheck": "_gradcheck",
    "check_sparse_tensor_invariants": "_invariants",
    "log_softmax": "_functions",
    "softmax": "_functions",
    "spdiags": "_functions",
    "sum": "_functions",
}
__getattr__ = attributes(__name__, _WHERE)


def __dir__():
    return sorted({*globals(), *_WHERE})
