"""Writes to views that could not share their tensor's memory.

A view across the cut of a tensor is made of a redistributed copy. Such a view knows its
tensor, and what is written to it is put into the tensor as well.
"""

from __future__ import annotations

import taeda

from ._redistribute import moved

_aten = taeda.ops.aten


def _slice_scatter(base, view, dim=0, start=None, end=None, step=1):
    return _aten.slice_scatter.default(base, view, dim, start, end, step)


def _select_scatter(base, view, dim, index):
    return _aten.select_scatter.default(base, view, dim, index)


def _shaped(base, view, *arguments):
    return view.reshape(base.shape)


def _transposed(base, view, dim0=0, dim1=1):
    return view.transpose(dim0, dim1)


# View -> how its tensor is made of the tensor and the view.
_INVERSES = {
    "aten::slice.Tensor": _slice_scatter,
    "aten::select.int": _select_scatter,
    "aten::view": _shaped,
    "aten::_unsafe_view": _shaped,
    "aten::unsqueeze": _shaped,
    "aten::squeeze": _shaped,
    "aten::squeeze.dim": _shaped,
    "aten::t": _transposed,
    "aten::transpose.int": _transposed,
}


def noted_view(func, values: dict, plan, made):
    """A view that knows where writes to it belong, where that is another memory."""
    viewed = next(iter(values.values()))
    if not any(plan.moves) and "_origin" not in viewed.__dict__:
        return made
    arguments = tuple(values.values())[1:] if any(plan.moves) else ()
    function = func if any(plan.moves) else None
    for item in made if isinstance(made, (list, tuple)) else [made]:
        item._origin = (viewed, function, arguments)
    return made


def write_back(view) -> None:
    """Puts what was written to a view into the tensor that it was made of.

    Raises:
        NotImplementedError: of a view whose inverse is not known.
    """
    origin = view.__dict__.get("_origin")
    while origin is not None:
        base, func, arguments = origin
        if func is not None:
            inverse = _INVERSES.get(func.name())
            if inverse is None:
                raise NotImplementedError(
                    f"{func}: a write to this view of a tensor that is placed as "
                    f"{tuple(map(str, base.placements))}; redistribute the tensor first"
                )
            whole = inverse(base, view, *arguments)
            spec = base._spec
            placed = moved(whole._local_tensor, whole._spec, spec.placements)
            base._local_tensor.copy_(placed)
        view, origin = base, base.__dict__.get("_origin")
