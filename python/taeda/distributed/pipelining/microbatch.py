"""A batch in micro-batches, and their results in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda.utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """A tensor is split, and put together, along a dimension.

    Args:
        split_dim (int): the dimension.

    On every rank:
        ScheduleGPipe(stage, 4, args_chunk_spec=TensorChunkSpec.from_tuple((0, 1)))
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        kind = type(self)
        return f"{kind.__module__}.{kind.__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple:
        """Dimensions of positional arguments as specifications."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict:
        """Dimensions of arguments by name as specifications."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """Every micro-batch gets the whole value."""


class _CustomReducer:
    """The results of micro-batches are combined by a function.

    Args:
        init_value: what the first is combined with. reduce_fn: of two values.
    """

    def __init__(self, init_value: Any, reduce_fn: Callable) -> None:
        self.init_value, self.reduce_fn = init_value, reduce_fn


def _default(value: Any) -> Any:
    tensor = isinstance(value, taeda.Tensor)
    return TensorChunkSpec(0) if tensor else _Replicate()


def _is_whole(spec: Any) -> bool:
    return spec is _Replicate or isinstance(spec, _Replicate)


def _specs(values: Any, given: Any) -> list:
    """The specification of each leaf of `values`."""
    leaves = pytree.tree_leaves(values)
    if given is None:
        return [_default(leaf) for leaf in leaves]
    specs = pytree.tree_leaves(given)
    if len(specs) != len(leaves):
        raise AssertionError(
            f"{len(leaves)} arguments have {len(specs)} chunk specifications: {given}"
        )
    for leaf, spec in zip(leaves, specs, strict=True):
        cut = isinstance(spec, TensorChunkSpec) and isinstance(leaf, taeda.Tensor)
        if not (cut or _is_whole(spec)):
            raise ValueError(
                f"Unsupported chunk spec: {spec} and value: {leaf} combination."
            )
    return specs


def split_tensor(tensor: taeda.Tensor, dim: int, chunks: int) -> Sequence[taeda.Tensor]:
    """A tensor in parts whose lengths differ by one at most.

    Raises:
        AssertionError: it is shorter than the number of parts.
    """
    if tensor.shape[dim] < chunks:
        raise AssertionError(
            f"a tensor of {tuple(tensor.shape)} cannot be split into {chunks} "
            f"micro-batches along dimension {dim}"
        )
    parts = taeda.tensor_split(tensor, chunks, dim)
    if tensor.requires_grad and tensor.is_leaf:
        for part in parts:
            part.retain_grad()
    return parts


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
) -> tuple[list[tuple], list[dict]]:
    """The arguments of a call as those of calls of micro-batches.

    Args:
        args, kwargs: the arguments, with tensors at any depth.
        chunks (int): how many; fewer come back if a tensor is shorter.
        args_chunk_spec, kwargs_chunk_spec: TensorChunkSpec for each leaf. By default
            tensors are split along dimension 0, and all else is given to each.

    Returns:
        Positional arguments, and those by name, of each micro-batch.
    """
    both = (tuple(args), dict(kwargs or {}))
    leaves, form = pytree.tree_flatten(both)
    specs = _specs(both[0], args_chunk_spec) + _specs(both[1], kwargs_chunk_spec)
    pairs = list(zip(leaves, specs, strict=True))
    lengths = [v.shape[s.split_dim] for v, s in pairs if not _is_whole(s)]
    count = min([chunks, *lengths])
    columns = [
        [v] * count if _is_whole(spec) else split_tensor(v, spec.split_dim, count)
        for v, spec in pairs
    ]
    calls = [
        pytree.tree_unflatten([column[i] for column in columns], form)
        for i in range(count)
    ]
    return [tuple(call[0]) for call in calls], [dict(call[1]) for call in calls]


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """The results of micro-batches as the result of the batch.

    Args:
        chunks: one result for each. chunk_spec: TensorChunkSpec for each leaf, what a
            result must be equal to in all otherwise; None joins all along dimension 0.

    Raises:
        ValueError: a result has another form. AssertionError: values differ.
    """
    if chunk_spec is None:
        form = pytree.tree_flatten(chunks[0])[1]
        specs: list = [TensorChunkSpec(0)] * form.num_leaves
    else:
        specs, form = pytree.tree_flatten(chunk_spec)
    rows = [pytree.tree_leaves(chunk) for chunk in chunks]
    for row, chunk in zip(rows, chunks, strict=True):
        if len(row) != len(specs):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
    columns = zip(*rows, strict=True)
    merged = [_merged(s, list(c)) for s, c in zip(specs, columns, strict=True)]
    return pytree.tree_unflatten(merged, form)


def _merged(spec: Any, values: list) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return taeda.cat(values, dim=spec.split_dim)
    if isinstance(spec, _CustomReducer):
        result = spec.init_value
        for value in values:
            result = spec.reduce_fn(result, value)
        return result
    for value in values[1:]:
        if value != values[0]:
            raise AssertionError(f"Expected {values[0]}, got {value}")
    return values[0]
