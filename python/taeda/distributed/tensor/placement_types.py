"""How a tensor lies along one dimension of a mesh."""

from __future__ import annotations

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What the ranks along one dimension of a mesh hold of a tensor.

    Placements are values: they never change, and compare by what they say.
    """

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether ranks hold parts along a dimension: of the tensor's, or along any."""
        return False

    def is_replicate(self) -> bool:
        """Whether every rank holds all of it."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the ranks' values are still to be reduced, in that way or any."""
        return False

    def _fields(self) -> tuple:
        return ()

    def __setattr__(self, name: str, value) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self._fields()))

    def __reduce__(self):
        return type(self), self._fields()


def _set(placement: Placement, **fields) -> None:
    for name, value in fields.items():
        object.__setattr__(placement, name, value)


def chunk_range(size: int, count: int, index: int) -> tuple[int, int]:
    """Where the part `index` of `count` begins and ends: all but the last are ceil."""
    step = -(-size // count)
    return min(step * index, size), min(step * (index + 1), size)


class Shard(Placement):
    """Ranks hold parts along a dimension, cut as `taeda.chunk` does.

    The last ranks hold less, or nothing, where the size is not divisible.

    Args:
        dim: of the tensor.
    """

    __slots__ = ("dim",)
    dim: int

    def __init__(self, dim: int) -> None:
        if not isinstance(dim, int):
            raise TypeError(f"Shard: expected an int, got {type(dim).__name__}")
        _set(self, dim=dim)

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is along that dimension, or along any if None."""
        return dim is None or self.dim == dim

    def _fields(self) -> tuple:
        return (self.dim,)

    def _on(self, dim: int) -> Shard:
        """The same along another dimension of the tensor."""
        return Shard(dim)

    def _ranges(self, size: int, count: int, index: int) -> list[tuple[int, int]]:
        """What the rank `index` of `count` holds of `size` rows: begins and ends."""
        return [chunk_range(size, count, index)]

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """How many rows a rank holds, and where they begin.

        Args:
            curr_local_size: rows that are cut.
            num_chunks: ranks.
            rank: which of them.
        """
        start, end = chunk_range(curr_local_size, num_chunks, rank)
        return end - start, start

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class _StridedShard(Placement):
    """Ranks hold a part of each of several equal pieces along a dimension.

    It is what remains of a cut when a later dimension of the mesh was cut first, or
    when an inner dimension becomes part of a longer one.

    Args:
        dim: of the tensor.
        split_factor: into how many pieces the dimension is cut first.
    """

    __slots__ = ("dim", "split_factor")
    dim: int
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int) -> None:
        _set(self, dim=dim, split_factor=split_factor)

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is along that dimension, or along any if None."""
        return dim is None or self.dim == dim

    def _fields(self) -> tuple:
        return (self.dim, self.split_factor)

    def _on(self, dim: int) -> _StridedShard:
        return _StridedShard(dim, split_factor=self.split_factor)

    def _ranges(self, size: int, count: int, index: int) -> list[tuple[int, int]]:
        """As `Shard._ranges`: one range for each piece that has rows for the rank."""
        found = []
        for piece in range(self.split_factor):
            first, end = chunk_range(size, self.split_factor, piece)
            low, high = chunk_range(end - first, count, index)
            if high > low:
                found.append((first + low, first + high))
        return found

    def __reduce__(self):
        return _strided_shard, self._fields()

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


def _strided_shard(dim: int, split_factor: int) -> _StridedShard:
    return _StridedShard(dim, split_factor=split_factor)


class Replicate(Placement):
    """Every rank holds all of the tensor."""

    __slots__ = ()

    def is_replicate(self) -> bool:
        """True."""
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """Every rank holds a value of the whole shape; the tensor is their reduction.

    Args:
        reduce_op: "sum" (also if None), "avg", "product", "max" or "min".
    """

    __slots__ = ("reduce_op",)
    reduce_op: str

    def __init__(self, reduce_op: str | None = None) -> None:
        _set(self, reduce_op="sum" if reduce_op is None else reduce_op)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it is reduced that way; True if None."""
        return reduce_op is None or self.reduce_op == reduce_op

    def _fields(self) -> tuple:
        return (self.reduce_op,)

    # What is done to a value before and after ranks' values are reduced, and to a whole
    # one that is to be a part.

    def _before(self, local):
        return local

    def _after(self, local):
        return local

    def _part_of(self, whole, count: int, index: int):
        """The rank's value, such that the reduction is `whole`.

        Raises:
            ValueError: of a product.
        """
        if self.reduce_op in ("avg", "max", "min"):
            return whole
        if self.reduce_op != "sum":
            raise ValueError(
                f"Replicate to Partial({self.reduce_op}) conversion is not supported."
            )
        if whole.is_floating_point() or whole.is_complex():
            return whole / count
        return whole if index == 0 else whole * 0

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


class _NormPartial(Partial):
    """Every rank holds the norm of its part: a sum of powers, and a root.

    Args:
        norm_type: the exponent, neither 0 nor infinite.
    """

    __slots__ = ("norm_type",)
    norm_type: float

    def __init__(self, norm_type: float = 2) -> None:
        _set(self, reduce_op="sum", norm_type=norm_type)

    def _fields(self) -> tuple:
        return (self.norm_type,)

    def _before(self, local):
        return local**self.norm_type

    def _after(self, local):
        return local ** (1.0 / self.norm_type)

    def _part_of(self, whole, count: int, index: int):
        return whole / count ** (1.0 / self.norm_type)

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type})"


class _MaskPartial(Partial):
    """Every rank holds the rows that it looked up, and zeros for those of others.

    Args:
        reduce_op: "sum".
        offset_shape: of the table.
        offset_dim: along which the table is cut.
    """

    __slots__ = ("offset_dim", "offset_shape")
    offset_shape: tuple[int, ...] | None
    offset_dim: int

    def __init__(
        self,
        reduce_op: str = "sum",
        offset_shape: tuple[int, ...] | None = None,
        offset_dim: int = 0,
    ) -> None:
        _set(
            self, reduce_op=reduce_op, offset_shape=offset_shape, offset_dim=offset_dim
        )

    def _fields(self) -> tuple:
        return (self.reduce_op, self.offset_shape, self.offset_dim)

    def __repr__(self) -> str:
        return (
            f"_MaskPartial(reduce_op={self.reduce_op}, "
            f"offset_shape={self.offset_shape}, offset_dim={self.offset_dim})"
        )

    def __str__(self) -> str:
        return f"MaskP({self.reduce_op}, {self.offset_shape}, {self.offset_dim})"
