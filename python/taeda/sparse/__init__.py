"""Products, reductions and settings of sparse tensors."""

from __future__ import annotations

from taeda._C import _sparse as _natives
from taeda._lazy import attributes

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
    "to_sparse_semi_structured",
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
_SEMI = (
    "SparseSemiStructuredTensor SparseSemiStructuredTensorCUSPARSELT"
    " SparseSemiStructuredTensorCUTLASS to_sparse_semi_structured"
)
_WHERE |= dict.fromkeys(_SEMI.split(), "semi_structured")
_KINDS = "Double Float Half BFloat16 Long Int Short Char Byte"
_TYPES = {f"{kind}Tensor": "._compat.sparse_types" for kind in _KINDS.split()}
_TYPES["torch"] = "._self"
__getattr__ = attributes(__name__, _WHERE | _TYPES, ("semi_structured",))


def __dir__():
    return sorted({*globals(), *_WHERE})
