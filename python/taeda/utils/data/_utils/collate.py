"""Samples to batches."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from contextvars import ContextVar
from copy import copy

import taeda

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
    "lists; found {}"
)
# Kinds of NumPy's arrays that hold text or objects.
np_str_obj_array_pattern = re.compile("[SaUO]")
# Where a worker's batch is made (memory.Arena); every thread has a value of its own.
batch_memory: ContextVar = ContextVar("batch_memory", default=None)


def _is_text(array) -> bool:
    """Does a NumPy array hold strings or objects?"""
    return np_str_obj_array_pattern.match(array.dtype.kind) is not None


def _rebuild_mapping(sample, values: dict):
    """A mapping of the sample's type with new values; a dict where that fails."""
    try:
        if isinstance(sample, MutableMapping):
            clone = copy(sample)  # keeps default factories and the like
            clone.update(values)
            return clone
        return type(sample)(values)
    except TypeError:
        return values


def _rebuild_sequence(sample, values: list):
    try:
        if isinstance(sample, MutableSequence):
            clone = copy(sample)
            for place, value in enumerate(values):
                clone[place] = value
            return clone
        return type(sample)(values)
    except TypeError:
        return values


def default_convert(data):
    """NumPy values inside containers to tensors; everything else stays.

    Example:
        >>> import numpy
        >>> default_convert([numpy.array([0, 1])])
        [tensor([0, 1])]
    """
    kind = type(data)
    if isinstance(data, taeda.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "bytes_"):
        if kind.__name__ == "ndarray" and _is_text(data):
            return data
        return taeda.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {k: default_convert(data[k]) for k in data})
    if isinstance(data, tuple):
        values = [default_convert(d) for d in data]
        return kind(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(d) for d in data])
    return data


def collate(batch, *, collate_fn_map: dict | None = None):
    """Samples to one batch, by the type of the first.

    Args:
        batch: a list of samples.
        collate_fn_map: type, or tuple of types, -> function(batch, collate_fn_map=).

    Raises:
        TypeError: a type that cannot be collated. RuntimeError: uneven sequences.
    """
    sample = batch[0]
    functions = collate_fn_map or {}
    function = functions.get(type(sample))
    if function is None:
        # A copy: another thread may be adding a type.
        known = list(functions.items())
        function = next((f for kind, f in known if isinstance(sample, kind)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def column(values):
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(sample, Mapping):
        values = {key: column([s[key] for s in batch]) for key in sample}
        return _rebuild_mapping(sample, values)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(column, zip(*batch, strict=False)))
    if isinstance(sample, Sequence):
        if len(set(map(len, batch))) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        values = [column(c) for c in zip(*batch, strict=True)]
        return (
            values if isinstance(sample, tuple) else _rebuild_sequence(sample, values)
        )
    raise TypeError(default_collate_err_msg_format.format(type(sample)))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack tensors; in a worker, large ones straight into memory to be passed on."""
    sample = batch[0]
    if sample.layout != taeda.strided:
        raise RuntimeError(
            f"tensors of layout {sample.layout} have no default collate_fn; provide a "
            "custom one"
        )
    arena = batch_memory.get()
    out = None if arena is None else arena.like(sample, len(batch))
    if out is None:
        return taeda.stack(list(batch), 0)
    return taeda.stack(list(batch), 0, out=out)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Stack NumPy arrays as tensors."""
    if _is_text(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    tensors = [taeda.as_tensor(b) for b in batch]
    return collate(tensors, collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """NumPy scalars to a tensor of their dtype."""
    return taeda.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Floats to a float64 tensor."""
    return taeda.tensor(batch, dtype=taeda.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Integers to an int64 tensor, truth values to a bool one."""
    return taeda.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings stay a sequence of strings."""
    return batch


default_collate_fn_map: dict = {
    taeda.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy() -> None:
    """NumPy's types, once somebody has imported it.

    Entries are only added, each in one step, so that threads may do it at once.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(numpy, "ndarray", None) in default_collate_fn_map:
        return
    scalars = (numpy.bool_, numpy.number, numpy.object_)
    default_collate_fn_map.setdefault(scalars, collate_numpy_scalar_fn)
    default_collate_fn_map.setdefault(numpy.ndarray, collate_numpy_array_fn)


def default_collate(batch):
    """Samples to a batch: tensors stacked, numbers to tensors, containers kept.

    Args:
        batch (list): samples of one structure.

    Raises:
        TypeError: a type that cannot be collated. RuntimeError: uneven sequences.

    Example:
        >>> default_collate([(1, "a"), (2, "b")])
        [tensor([1, 2]), ('a', 'b')]
    """
    _know_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)
