"""What a model is made of, as a table."""

from __future__ import annotations

from typing import NamedTuple

import taeda

__all__ = ["summary"]


class _Row(NamedTuple):
    path: str
    kind: str
    shape: str
    parameters: int
    trained: int
    nbytes: int


def _shapes(output) -> str:
    from taeda.utils._pytree import tree_leaves

    shapes = [list(x.shape) for x in tree_leaves(output) if isinstance(x, taeda.Tensor)]
    return str(shapes[0]) if len(shapes) == 1 else str(shapes) if shapes else ""


def _outputs(model, args: tuple, kwargs: dict) -> dict[str, str]:
    """The shapes that each module gives, by path; of several calls the last."""
    found: dict[str, str] = {}

    def keep(path: str):
        def hook(module, given, output) -> None:
            found[path] = _shapes(output)

        return hook

    hooks = [m.register_forward_hook(keep(name)) for name, m in model.named_modules()]
    modes = [(module, module.training) for module in model.modules()]
    try:
        with taeda.no_grad():
            model.eval()(*args, **kwargs)
    finally:
        for module, training in modes:
            module.training = training
        for hook in hooks:
            hook.remove()
    return found


def _size(n: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.1f} {unit}" if unit != "B" else f"{n} B"
        n /= 1024
    return f"{n:.1f} GiB"


def summary(model, *args, depth: int | None = None, **kwargs) -> str:
    """A line for each module: its path, class, result's shape and own parameters.

    Args:
        model (nn.Module): what is described.
        args, kwargs: what the model is called with, in eval mode and without
            gradients, to see the shapes; without any, the column stays empty.
        depth (int): modules so far below the model; None for all.

    Returns:
        str: the table, with sums below. Parameters that several modules share are
        those of the first; bytes are of parameters and buffers.

    Example:
        >>> model = taeda.nn.Sequential(taeda.nn.Linear(4, 2), taeda.nn.ReLU())
        >>> print(taeda.debug.summary(model, taeda.ones(1, 4)).splitlines()[2])
        0        Linear      [1, 2]          10       10    40 B
    """
    shapes = _outputs(model, args, kwargs) if args or kwargs else {}
    seen: set[int] = set()
    rows = []
    for path, module in model.named_modules():
        own = [p for p in module._parameters.values() if p is not None]
        own = [p for p in own if id(p) not in seen and not seen.add(id(p))]
        held = [*own, *(b for b in module._buffers.values() if b is not None)]
        rows.append(
            _Row(
                path,
                type(module).__name__,
                shapes.get(path, ""),
                sum(p.numel() for p in own),
                sum(p.numel() for p in own if p.requires_grad),
                sum(t.numel() * t.element_size() for t in held),
            )
        )
    return _table(rows, depth)


def _level(path: str) -> int:
    return path.count(".") + 1 if path else 0


def _table(rows: list[_Row], depth: int | None) -> str:
    totals = [sum(row[i] for row in rows) for i in (3, 4, 5)]
    shown = [r for r in rows if depth is None or _level(r.path) <= depth]
    titles = ("Module", "Class", "Output", "Parameters", "Trained", "Memory")
    lines = [titles]
    for row in shown:
        numbers = (f"{row.parameters:,}", f"{row.trained:,}", _size(row.nbytes))
        lines.append((row.path or "(model)", row.kind, row.shape, *numbers))
    last = (f"{totals[0]:,}", f"{totals[1]:,}", _size(totals[2]))
    lines.append(("", "", "Sum", *last))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def text(cells) -> str:
        fitted = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(fitted).rstrip()

    rule = "-" * (sum(widths) + 2 * len(widths) - 2)
    body = [text(cells) for cells in lines]
    return "\n".join([body[0], *body[1:-1], rule, body[-1]])
