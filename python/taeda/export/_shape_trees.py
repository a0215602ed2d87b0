"""Holds what was said of dynamic sizes to the structure of the arguments."""

from __future__ import annotations

import taeda
from taeda._dynamo.exc import UserError, UserErrorType
from taeda.utils import _pytree as pytree

from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint

__all__ = ["leaf_shapes"]

_HELP = (
    "For more information about this error, see: https://pytorch.org/docs/main/"
    "generated/exportdb/index.html#dynamic-shapes-validation"
)


def _mismatch(what: str, where: str, inputs, shapes) -> UserError:
    return UserError(
        UserErrorType.INVALID_INPUT,
        f"Detected mismatch between the structure of `inputs{where}` and "
        f"`dynamic_shapes{where}`: {what.format(inputs, shapes)}\n{_HELP}",
    )


def leaf_shapes(combined: dict, dynamic_shapes) -> list:
    """What was said of each leaf of the arguments, in their order.

    Args:
        combined: name of a parameter -> its argument.
        dynamic_shapes: as `export` takes it.

    Returns:
        None, or what stands at the leaf's place: a dict or sequence of dims for a
        tensor, a hint for an integer.

    Raises:
        UserError: the trees differ, or something stands there that is none of these.
    """
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        raise AssertionError("collections of shapes are resolved by export")
    if dynamic_shapes is None or len(dynamic_shapes) == 0:
        return [None] * len(pytree.tree_leaves(combined))
    if isinstance(dynamic_shapes, dict):
        names = list(combined)
        if list(dynamic_shapes) != names and set(dynamic_shapes) != set(names):
            raise _wrong_names(names, list(dynamic_shapes))
        dynamic_shapes = {name: dynamic_shapes[name] for name in names}
        pairs = [(f"[{n!r}]", combined[n], dynamic_shapes[n]) for n in names]
    else:
        values, shapes = list(combined.values()), list(dynamic_shapes)
        if len(values) != len(shapes):
            text = "`inputs` has {} elements, but `dynamic_shapes` has {} elements"
            raise _mismatch(text, "", len(values), len(shapes))
        pairs = [
            (f"[{i}]", v, s)
            for i, (v, s) in enumerate(zip(values, shapes, strict=True))
        ]
    found: list = []
    for where, value, shape in pairs:
        _collect(value, shape, where, found)
    return found


def _wrong_names(names: list, given: list) -> UserError:
    text = (
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be the "
        f"arg names {names} of `inputs`, but here they are {given}. "
    )
    text += (
        "Alternatively, you could also ignore arg names entirely and specify "
        "`dynamic_shapes` as a list/tuple matching `inputs`. "
    )
    return UserError(UserErrorType.INVALID_INPUT, text + _HELP)


def _collect(value, shape, where: str, found: list) -> None:
    if shape is None:
        found += [None] * len(pytree.tree_leaves(value))
        return
    if pytree.tree_is_leaf(value):
        _check_leaf(value, shape, where)
        found.append(shape)
        return
    keyed = isinstance(value, dict)
    if keyed and isinstance(shape, dict):
        if set(shape) != set(value):
            text = "`inputs" + where + "` has keys {}, but `dynamic_shapes" + where
            raise _mismatch(text + "` has keys {}", where, list(value), list(shape))
        for key in value:
            _collect(value[key], shape[key], f"{where}[{key!r}]", found)
        return
    kind = pytree._kind_of(value)
    if keyed or not isinstance(shape, (list, tuple)):
        shown = type(value), type(shape)
        text = "`inputs" + where + "` is a {}, but `dynamic_shapes" + where
        raise _mismatch(text + "` is a {}", where, *shown)
    children, _ = kind.flatten(value)
    if len(children) != len(shape):
        text = "`inputs" + where + "` has {} elements, but `dynamic_shapes" + where
        raise _mismatch(text + "` has {} elements", where, len(children), len(shape))
    for i, (child, below) in enumerate(zip(children, shape, strict=True)):
        _collect(child, below, f"{where}[{i}]", found)


def _check_leaf(value, shape, where: str) -> None:
    if not isinstance(value, taeda.Tensor):
        number = isinstance(value, int) and isinstance(shape, (_DimHint, Dim))
        if number and not isinstance(value, bool):
            return
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Cannot associate shape {shape} specified at `dynamic_shapes{where}` to "
            f"non-tensor type {type(value)} at `inputs{where}` (expected None)\n"
            + _HELP,
        )
    if isinstance(shape, dict):
        for index, dim in shape.items():
            if not isinstance(index, int):
                raise _wrong_dim("key", index, shape, where)
            _check_dim(index, dim, shape, where)
            if not -value.dim() <= index < value.dim():
                raise IndexError(
                    f"dynamic_shapes{where}: a tensor of {value.dim()} dims has no dim "
                    f"{index}"
                )
        return
    if not isinstance(shape, (list, tuple)):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Unexpected input tensor shape {shape} specified at "
            f"`dynamic_shapes{where}` (expected either a list/tuple of dimensions, or a"
            " dict mapping indices to dimensions, where each dimension is an int, a Dim"
            ", Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)\n{_HELP}",
        )
    if len(shape) != value.dim():
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{where}` "
            f"to have the same length as the actual tensor shape {value.shape} "
            f"(expected {value.dim()}, but got {len(shape)} instead)\n{_HELP}",
        )
    for index, dim in enumerate(shape):
        _check_dim(index, dim, shape, where)


def _check_dim(index, dim, shape, where: str) -> None:
    if dim is not None and not isinstance(dim, (int, Dim, _DimHint)):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Unexpected dimension mapped to index {index} in input tensor shape "
            f"{shape} specified at `dynamic_shapes{where}` (expected None, an int, a "
            f"Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {dim!r} instead)\n"
            + _HELP,
        )


def _wrong_dim(what: str, index, shape, where: str) -> UserError:
    return UserError(
        UserErrorType.INVALID_INPUT,
        f"Unexpected {what} {index!r} in input tensor shape {shape} specified at "
        f"`dynamic_shapes{where}` (expected an integer)\n{_HELP}",
    )
