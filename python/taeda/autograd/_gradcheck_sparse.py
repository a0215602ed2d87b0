"""Where the elements of an input of gradcheck lie, of a sparse one too."""

from __future__ import annotations

from itertools import pairwise

import taeda

__all__ = ["cells", "dense_values", "places"]


def places(tensor) -> list[tuple[int, ...]]:
    """The indices of all elements, in row-major order."""
    found: list[tuple[int, ...]] = [()]
    for size in tensor.shape:
        found = [(*head, i) for head in found for i in range(size)]
    return found


def dense_values(tensor) -> list:
    """The numbers of all elements, zeros of a sparse tensor among them."""
    tensor = tensor.detach()
    if tensor.layout is not taeda.strided:
        tensor = tensor.to_dense()
    flat = tensor.reshape(-1)
    if type(flat) is taeda.Tensor:
        return flat.tolist()
    return [element.item() for element in flat]  # tolist refuses subclasses


def cells(tensor) -> list:
    """For each element of an input, the tensor and the place that hold it.

    None for the elements of a sparse tensor that it has no entries for: they are no
    variables of a function of it.

    Raises:
        NotImplementedError: a layout with blocks or batches.
    """
    if tensor.layout is taeda.strided:
        data = tensor.data  # its changes do not count as changes of the tensor
        return [(data, place) for place in places(tensor)]
    values = tensor.detach()._values().data
    found: dict = dict.fromkeys(places(tensor))
    for entry, head in enumerate(_entries(tensor.detach())):
        for rest in places(values[entry]):
            found[(*head, *rest)] = values, (entry, *rest)
    return list(found.values())


def _entries(tensor) -> list[tuple[int, ...]]:
    """The sparse part of the index of each entry."""
    if tensor.layout is taeda.sparse_coo:
        indices = tensor._indices()
        if indices.shape[0] == 0:
            return [()] * indices.shape[1]
        return [tuple(column) for column in indices.t().tolist()]
    by_rows = tensor.layout is taeda.sparse_csr
    if not (by_rows or tensor.layout is taeda.sparse_csc) or tensor.dim() != 2:
        raise NotImplementedError(
            f"gradcheck: inputs of layout {tensor.layout} and {tensor.dim()} dims"
        )
    offsets = tensor.crow_indices() if by_rows else tensor.ccol_indices()
    others = tensor.col_indices() if by_rows else tensor.row_indices()
    lines = [
        line
        for line, (begin, end) in enumerate(pairwise(offsets.tolist()))
        for _ in range(end - begin)
    ]
    pairs = list(zip(lines, others.tolist(), strict=True))
    return pairs if by_rows else [(row, column) for column, row in pairs]
