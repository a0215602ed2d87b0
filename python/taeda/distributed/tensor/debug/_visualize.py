"""Where the parts of a tensor lie, as a table."""

from __future__ import annotations

from .._layout import parts_of

__all__ = ["visualize_sharding"]


def visualize_sharding(dtensor, header: str = "", use_rich: bool = False) -> None:
    """Prints which ranks hold which rows and columns; at the mesh's first rank only.

    Args:
        dtensor: of one or two dimensions. Nothing is printed of an empty one.
        header: a line above the table.
        use_rich: not supported.

    Raises:
        RuntimeError: more dimensions.
        NotImplementedError: `use_rich`.
    """
    if dtensor.numel() == 0:
        return
    if dtensor.dim() >= 3:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    if use_rich:
        raise NotImplementedError("visualize_sharding: use_rich")
    mesh = dtensor.device_mesh
    if mesh.get_coordinate() is None or any(mesh.get_coordinate()):
        return
    held: dict[tuple, list[int]] = {}
    for rank, (shape, offset) in parts_of(dtensor._spec).items():
        rows = (offset[0], offset[0] + shape[0] - 1)
        columns = (offset[1], offset[1] + shape[1] - 1) if len(shape) == 2 else (0, 0)
        held.setdefault((rows, columns), []).append(rank)
    if header:
        print(header)
    print(_table(held, mesh.device_type))


def _table(held: dict[tuple, list[int]], kind: str) -> str:
    rows = sorted({key[0] for key in held})
    columns = sorted({key[1] for key in held})
    cells = [["", *(f"Col {a}-{b}" for a, b in columns)]]
    for row in rows:
        line = [f"Row {row[0]}-{row[1]}"]
        for column in columns:
            ranks = held.get((row, column), [])
            line.append(", ".join(f"{kind}:{rank}" for rank in ranks))
        cells.append(line)
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    shown = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([shown[0], "  ".join("-" * w for w in widths), *shown[1:]])
