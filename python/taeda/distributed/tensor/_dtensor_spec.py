"""What is known of a distributed tensor without its values."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import NamedTuple

import taeda

from ..device_mesh import DeviceMesh
from .placement_types import Placement

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole tensor."""

    shape: taeda.Size
    stride: tuple[int, ...]
    dtype: taeda.dtype


# Note [Tokens of specs]
# Dispatch looks a call up by its tensors' specs. Equal specs have the same token, a
# number made when a spec is first asked for it, so that a look-up hashes numbers in
# place of meshes and placements. No number is given twice: when the table is emptied,
# equal specs may get another one, and calls are planned again. `setdefault` is atomic
# under the interpreter's lock.
_tokens: dict[tuple, int] = {}
_numbers = count()
_MANY = 20_000

# The class of distributed tensors, entered once by the module that has it.
_wrapper_class: list[type] = []


class DTensorSpec:
    """Mesh, placements, and shape, strides and dtype of the whole.

    Args:
        mesh: the ranks.
        placements: one for each dimension of the mesh.
        tensor_meta: of the whole tensor.
    """

    __slots__ = ("_token", "_maker", "mesh", "placements", "tensor_meta")

    def __init__(
        self,
        mesh: DeviceMesh,
        placements: tuple[Placement, ...],
        tensor_meta: TensorMeta | None = None,
    ) -> None:
        self.mesh, self.placements = mesh, tuple(placements)
        self.tensor_meta = tensor_meta
        self._token: int | None = None
        self._maker: partial | None = None

    @property
    def token(self) -> int:
        """Equal specs have the same, see Note [Tokens of specs]."""
        if self._token is None:
            if len(_tokens) >= _MANY:
                _tokens.clear()
            # A plan is of this rank, and ranks of equal meshes may share a process.
            key = (self.mesh.get_coordinate(), *self._key())
            self._token = _tokens.setdefault(key, next(_numbers))
        return self._token

    def maker(self, device) -> partial:
        """What makes the tensor that stands for the whole, without its part."""
        if self._maker is None:
            shape, stride, dtype = self._meta()
            geometry = tuple(shape), tuple(stride), 0, dtype, taeda.device(device)
            self._maker = partial(
                taeda._C._make_wrapper_subclass, _wrapper_class[0], *geometry
            )
        return self._maker

    def _key(self) -> tuple:
        return (self.mesh, self.placements, self.tensor_meta)

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def shape(self) -> taeda.Size:
        """The whole tensor's sizes."""
        return self._meta().shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The whole tensor's strides."""
        return self._meta().stride

    @property
    def ndim(self) -> int:
        """How many dimensions the tensor has."""
        return len(self._meta().shape)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks."""
        return self.mesh

    @property
    def num_shards(self) -> int:
        """Into how many parts the tensor is cut."""
        count = 1
        for dim, placement in enumerate(self.placements):
            if placement.is_shard():
                count *= self.mesh.size(dim)
        return count

    @property
    def dim_map(self) -> list[int]:
        """For each of the tensor's dimensions the mesh's that cuts it, or -1."""
        found = [-1] * self.ndim
        for at, placement in enumerate(self.placements):
            if placement.is_shard():
                found[placement.dim] = at
        return found

    @property
    def sums(self) -> list[int]:
        """The mesh's dimensions along which values are still to be reduced."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    def is_replicated(self) -> bool:
        """Whether every rank holds everything."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self) -> bool:
        """Whether any rank holds a part only."""
        return any(p.is_shard() for p in self.placements)

    def shallow_copy_with_tensor_meta(
        self, tensor_meta: TensorMeta | None
    ) -> DTensorSpec:
        """The same placements of another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, DTensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self):
        return DTensorSpec, self._key()

    def __str__(self) -> str:
        shown = "".join(map(str, self.placements))
        if self.tensor_meta is None:
            return f"Spec(unknown shape({shown}))"
        from taeda.utils._dtype_abbrs import dtype_abbrs

        shape, _, dtype = self.tensor_meta
        return f"Spec({dtype_abbrs[dtype]}{list(shape)}({shown}))"

    def __repr__(self) -> str:
        return (
            f"DTensorSpec(mesh={self.mesh!r}, placements={self.placements!r}, "
            f"tensor_meta={self.tensor_meta!r})"
        )
