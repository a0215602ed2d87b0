"""Sparse tensors of random sizes and numbers of entries."""

from __future__ import annotations

import math
import random

import taeda

from .fuzzer import FuzzedTensor

__all__ = ["FuzzedSparseTensor"]


class FuzzedSparseTensor(FuzzedTensor):
    """A COO tensor with random entries; see `Fuzzer`.

    Args:
        name, size, min_elements, max_elements, dim_parameter, dtype, cuda: as those of
            `FuzzedTensor`.
        sparse_dim: the parameter that says how many dims are sparse; at most all.
        nnz: the parameter that says how many entries there are; without, `density`
            does.
        density: the parameter that says which part of the places has an entry.
        coalesced: the parameter that says whether no place comes twice.
    """

    def __init__(
        self,
        name,
        size,
        min_elements=None,
        max_elements=None,
        dim_parameter=None,
        sparse_dim=None,
        nnz=None,
        density=None,
        coalesced=None,
        dtype=taeda.float32,
        cuda=False,
    ) -> None:
        super().__init__(
            name,
            size,
            min_elements=min_elements,
            max_elements=max_elements,
            dim_parameter=dim_parameter,
            dtype=dtype,
            cuda=cuda,
        )
        self._keys = {
            "sparse_dim": sparse_dim,
            "nnz": nnz,
            "density": density,
            "coalesced": coalesced,
        }

    @staticmethod
    def sparse_tensor_constructor(size, dtype, sparse_dim: int, nnz: int, is_coalesced):
        """A COO tensor with so many entries at random places.

        Args:
            size: of all dims, the first `sparse_dim` of which are sparse.
            nnz: entries, before those of one place are added.
            is_coalesced: whether they are added; else about half of them come twice.
        """
        dense = tuple(size[sparse_dim:])
        values = FuzzedTensor.default_tensor_constructor((nnz, *dense), dtype)
        room = taeda.tensor(size[:sparse_dim]).unsqueeze(1)
        places = (taeda.rand(sparse_dim, nnz) * room).long()
        if not is_coalesced:
            half = nnz // 2
            places[:, half : 2 * half] = places[:, :half]
        made = taeda.sparse_coo_tensor(places, values, tuple(size))
        return made.coalesce() if is_coalesced else made

    def _parameter(self, params, name: str, otherwise):
        return params.get(self._keys[name] or name, otherwise)

    def _make_tensor(self, params, state: random.Random):
        size, _, _ = self._geometry(params)
        sparse_dim = min(self._parameter(params, "sparse_dim", len(size)), len(size))
        places = math.prod(size[:sparse_dim])
        density = self._parameter(params, "density", 0.5)
        nnz = self._parameter(params, "nnz", math.ceil(places * density))
        coalesced = self._parameter(params, "coalesced", True)
        tensor = self.sparse_tensor_constructor(
            size, self._dtype, sparse_dim, nnz, coalesced
        )
        tensor = tensor.cuda() if self._cuda else tensor
        properties = {
            "numel": tensor.numel(),
            "shape": tensor.size(),
            "is_coalesced": tensor.is_coalesced(),
            "density": nnz / places if places else 0.0,
            "sparsity": 1 - nnz / places if places else 1.0,
            "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(),
            "is_hybrid": tensor.dense_dim() > 0,
            "dtype": str(self._dtype),
        }
        return tensor, properties
