"""Matrices of which two of four neighbours are zero, as NVIDIA's GPUs multiply them.

There are no kernels for them: nothing can be compressed. On the CPU the refusals are
those of PyTorch, which has no such kernels there either.
"""

from __future__ import annotations

from taeda import Tensor

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]


def _refuse(name: str, original_tensor) -> None:
    if not original_tensor.is_cuda:
        raise RuntimeError(
            f"Error original_tensor.device= {original_tensor.device} is not supported! "
            "Only CUDA tensors are currently supported."
        )
    raise NotImplementedError(f"sparse.{name} is not there yet")


class SparseSemiStructuredTensor(Tensor):
    """Such a matrix, compressed: the base class of two layouts.

    Args:
        shape: of the matrix.
        packed, meta: what is not zero, and where it stands.
        packed_t, meta_t: the same of the transpose.
        compressed_swizzled_bitmask: where, in tiles.
        fuse_transpose_cusparselt, alg_id_cusparselt: how cuSPARSELt multiplies.
        requires_grad: whether gradients are wanted.

    Raises:
        ValueError: neither `packed` nor `packed_t`.
        NotImplementedError: otherwise; nothing could use the object.
    """

    def __new__(
        cls,
        shape,
        packed,
        meta,
        packed_t,
        meta_t,
        compressed_swizzled_bitmask,
        fuse_transpose_cusparselt: bool = False,
        alg_id_cusparselt: int = 0,
        requires_grad: bool = False,
    ):
        if packed is None and packed_t is None:
            raise ValueError("At least one of packed or packed_t must be provided")
        raise NotImplementedError(f"sparse.{cls.__name__} is not there yet")

    @classmethod
    def from_dense(cls, original_tensor, alg_id: int = 0):
        """A matrix compressed.

        Args:
            original_tensor (Tensor): on a GPU, with two zeros in each four neighbours.
            alg_id: cuSPARSELt's algorithm.

        Raises:
            RuntimeError: it is not on a GPU.
            NotImplementedError: it is.
        """
        _refuse(cls.__name__, original_tensor)

    @classmethod
    def prune_dense_static_sort(cls, original_tensor, algorithm: str = ""):
        """The largest two of each four neighbours, compressed.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "Could not run 'aten::_sparse_semi_structured_tile' with arguments from "
            f"the '{original_tensor.device.type.upper()}' backend"
        )


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """In the layout of CUTLASS."""

    def to_dense(self):
        """The matrix with its zeros; there is none to ask."""
        raise NotImplementedError("sparse.SparseSemiStructuredTensorCUTLASS.to_dense")


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """In the layout of cuSPARSELt."""


def to_sparse_semi_structured(
    original_tensor, transposed: bool = False, alg_id: int = 0
):
    """A matrix in the layout that the GPU multiplies.

    Args:
        original_tensor (Tensor): on a GPU, with two zeros in each four neighbours.
        transposed: deprecated, without meaning.
        alg_id: cuSPARSELt's algorithm.

    Raises:
        RuntimeError: it is not on a GPU.
        NotImplementedError: it is; there are no such kernels yet.
    """
    _refuse("to_sparse_semi_structured", original_tensor)
