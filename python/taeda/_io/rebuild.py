"""Tensors from what a checkpoint says about them, checked before anything is made."""

from __future__ import annotations

from _pickle import UnpicklingError
from _thread import _local

import taeda
from taeda._io.limits import Allowance, short

_MAX = 2**63 - 1
_MAX_DIMENSIONS = 64  # what the operators take
_ATTRIBUTE = 200  # bytes of an entry in a tensor's own dictionary
_SPARSE = 8192  # what checking a sparse tensor costs, beside its indices


def refuse(text: str):
    """Raise the error of a checkpoint that cannot be right."""
    raise UnpicklingError(f"the checkpoint is damaged: {text}")


def ints(value, what: str) -> tuple:
    """A tuple of sizes, strides or offsets."""
    if not isinstance(value, (tuple, list)):
        refuse(f"{what} is {short(value)}, not a tuple")
    for entry in value:
        if type(entry) is not int or not 0 <= entry <= _MAX:
            refuse(f"{what} contains {short(entry)}")
    return tuple(value)


def check_geometry(elements: int, offset, size, stride) -> tuple[tuple, tuple]:
    """Refuse a tensor that reaches outside a storage of `elements` elements."""
    for value in (size, stride):
        if isinstance(value, (tuple, list)) and len(value) > _MAX_DIMENSIONS:
            refuse(f"a tensor has more than {_MAX_DIMENSIONS} dimensions")
    size, stride = ints(size, "a size"), ints(stride, "a stride")
    ints((offset,), "an offset")
    if len(size) != len(stride):
        refuse(f"size {size} and stride {stride} differ in length")
    count = 1
    for n in size:
        count *= n
    if count > _MAX:
        refuse(f"size {size} is too large")
    if count:
        pairs = zip(size, stride, strict=True)
        last = offset + sum((n - 1) * step for n, step in pairs)
        if last >= elements:
            refuse(
                f"a tensor of size {size}, stride {stride} and offset {offset} ends "
                f"outside its storage of {elements} elements"
            )
    return size, stride


def _tensor(storage, dtype, offset, size, stride):
    untyped = getattr(storage, "_untyped_storage", storage)
    if not isinstance(untyped, taeda.UntypedStorage):
        refuse(f"expected a storage, got {type(storage).__name__}")
    if not isinstance(dtype, taeda.dtype):
        refuse(f"expected a dtype, got {short(dtype)}")
    elements = untyped.nbytes() // dtype.itemsize
    size, stride = check_geometry(elements, offset, size, stride)
    empty = taeda.empty((0,), dtype=dtype, device=untyped.device)
    return empty.set_(untyped, offset, size, stride)


def _finish(tensor, requires_grad, metadata):
    if type(requires_grad) is not bool:
        refuse(f"requires_grad is {short(requires_grad)}")
    if requires_grad:
        tensor.requires_grad_(True)
    if metadata is None:
        return tensor
    if not isinstance(metadata, dict):
        refuse(f"the metadata of a tensor are {short(metadata)}")
    for name in metadata:
        if metadata[name] is not True:
            continue
        if name == "conj":
            tensor = tensor.conj()
        elif name == "neg":
            tensor = tensor._neg_view()
        else:
            refuse(f"unknown tensor metadata {short(name)}")
    return tensor


def tensor_v1(storage, offset, size, stride):
    """torch._utils._rebuild_tensor."""
    dtype = getattr(storage, "dtype", None)
    return _tensor(storage, dtype, offset, size, stride)


def tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata=None):
    """torch._utils._rebuild_tensor_v2: the dtype is the storage's."""
    tensor = tensor_v1(storage, offset, size, stride)
    return _finish(tensor, requires_grad, metadata)


def tensor_v3(
    storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None
):
    """torch._utils._rebuild_tensor_v3: the dtype stands beside the storage."""
    tensor = _tensor(storage, dtype, offset, size, stride)
    return _finish(tensor, requires_grad, metadata)


def parameter(data, requires_grad, hooks):
    """torch._utils._rebuild_parameter."""
    if not isinstance(data, taeda.Tensor) or type(requires_grad) is not bool:
        refuse(f"a parameter made of {short(data)} and {short(requires_grad)}")
    return taeda.nn.Parameter(data, requires_grad)


def parameter_with_state(data, requires_grad, hooks, state):
    """torch._utils._rebuild_parameter_with_state."""
    return _with_state(parameter(data, requires_grad, hooks), state)


def _with_state(tensor, state):
    """Attributes that the user had set on a tensor, and those of its slots."""
    if type(tensor).__setstate__ is not taeda.Tensor.__setstate__:
        tensor.__setstate__(state)
        return tensor
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, dict):
            refuse(f"attributes of a tensor in {short(part)}")
        spend(_ATTRIBUTE * len(part))
        for name, value in part.items():
            setattr(tensor, name, value)
    return tensor


def from_type_v2(function, kind, args, state):
    """torch._tensor._rebuild_from_type_v2: a subclass, or attributes on a tensor."""
    if not any(function is plain for plain in _PLAIN):
        refuse(f"a tensor rebuilt by {short(function)}")
    if type(args) is not tuple:
        refuse(f"arguments are {short(args)}, not a tuple")
    tensor = function(*args)
    if kind is not taeda.Tensor and type(tensor) is not kind:
        if not (isinstance(kind, type) and issubclass(kind, taeda.Tensor)):
            refuse(f"{short(kind)} is no tensor class")
        tensor = tensor.as_subclass(kind)
    return _with_state(tensor, state)


def meta_tensor(dtype, size, stride, requires_grad):
    """torch._utils._rebuild_meta_tensor_no_storage."""
    size, stride = check_geometry(_MAX, 0, size, stride)
    tensor = taeda.empty_strided(size, stride, dtype=dtype, device="meta")
    return _finish(tensor, requires_grad, None)


def wrapper_subclass(
    kind, dtype, size, stride, storage_offset, layout, device, requires_grad
):
    """torch._utils._rebuild_wrapper_subclass: what it wraps is among its attributes."""
    if not (isinstance(kind, type) and issubclass(kind, taeda.Tensor)):
        refuse(f"{short(kind)} is no tensor class")
    size, stride = check_geometry(_MAX, 0, size, stride)
    made = taeda.Tensor._make_wrapper_subclass(
        *(kind, size),
        strides=stride,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        dtype=dtype,
    )
    return _finish(made, requires_grad, None)


def layout(name):
    """torch.serialization._get_layout."""
    kinds = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
    kind = name.rpartition(".")[2] if type(name) is str else None
    if kind not in kinds:
        refuse(f"unknown layout {short(name)}")
    return getattr(taeda, kind)


def check_sparse(tensor) -> None:
    """Refuse indices outside the tensor, or a false claim of order."""
    name = str(tensor.layout).rpartition("_")[2]
    try:
        if name == "coo":
            taeda._validate_sparse_coo_tensor_args(
                tensor._indices(),
                tensor._values(),
                tensor.size(),
                tensor.is_coalesced(),
            )
            return
        rows = name in ("csr", "bsr")
        taeda._validate_sparse_compressed_tensor_args(
            tensor.crow_indices() if rows else tensor.ccol_indices(),
            tensor.col_indices() if rows else tensor.row_indices(),
            tensor._values(),
            tensor.size(),
            tensor.layout,
        )
    except RuntimeError as error:
        refuse(str(error))


class Loading:
    """The load that this thread is at.

    Args:
        allowance: what the file may cost. fill: reads the bytes of the storages that
            have been named so far, or None where they come later (the old format).
    """

    def __init__(self, allowance: Allowance, fill) -> None:
        self.allowance, self.fill, self.sparse = allowance, fill, []

    def __enter__(self) -> None:
        self.outer = getattr(_thread, "load", None)
        _thread.load = self

    def __exit__(self, kind, value, traceback) -> None:
        _thread.load = self.outer
        if kind is None:
            for tensor in self.sparse:
                check_sparse(tensor)


_thread = _local()  # each thread has its own `load`, one inside another


def spend(count: int) -> None:
    """Take bytes from the allowance of this thread's load, if it is at one."""
    load = getattr(_thread, "load", None)
    if load is not None:
        load.allowance.spend(count)


def _sparse_of(kind, parts, size, rest):
    """The tensor of parts that are not checked yet."""
    try:
        if kind is not taeda.sparse_coo:
            return taeda.sparse_compressed_tensor(
                *parts, size, layout=kind, check_invariants=False
            )
        tensor = taeda.sparse_coo_tensor(*parts, size, check_invariants=False)
    except RuntimeError as error:
        refuse(str(error))
    if rest and rest[0] is True:
        tensor._coalesced_(True)
    return tensor


def sparse_tensor(kind, data):
    """torch._utils._rebuild_sparse_tensor; indices are checked."""
    if not isinstance(kind, taeda.layout):
        refuse(f"{short(kind)} is no layout")
    count = 2 if kind is taeda.sparse_coo else 3
    if type(data) is not tuple or not count < len(data) <= 4:
        refuse(f"a sparse tensor made of {short(data)}")
    *parts, size = data[: count + 1]
    for part in parts:
        if not isinstance(part, taeda.Tensor):
            refuse(f"a sparse tensor made of {short(part)}")
        # Views may have far more elements than their storage.
        spend(_SPARSE + part.numel() * part.dtype.itemsize)
    tensor = _sparse_of(kind, parts, ints(size, "a size"), data[count + 1 :])
    load = getattr(_thread, "load", None)
    if load is None:
        check_sparse(tensor)
    else:
        load.sparse.append(tensor)  # its storages may not have been read yet
    return tensor


def device_tensor_from_cpu(data, dtype, device, requires_grad):
    """torch._utils._rebuild_device_tensor_from_cpu_tensor."""
    if not isinstance(data, taeda.Tensor) or not isinstance(dtype, taeda.dtype):
        refuse(f"a tensor made of {short(data)} and {short(dtype)}")
    spend(data.numel() * (data.dtype.itemsize + dtype.itemsize))
    load = getattr(_thread, "load", None)
    if load is not None:
        # The copy must not be made before the bytes are there.
        if load.fill is None:
            raise NotImplementedError(
                "tensors of other devices in a file of the old format; save it again "
                "in the zip format first"
            )
        load.fill()
    try:
        moved = data.to(dtype=dtype, device=device)
    except AssertionError as error:  # of a device that this build does not know
        raise RuntimeError(f"a tensor on {short(device)}: {error}") from error
    return _finish(moved, requires_grad, None)


def nested(values, offsets, lengths, place):
    """A nested tensor; its offsets are looked at by what reads them, with checks."""
    from taeda.nested._tensor import _rebuilt

    parts = [values, offsets] + [lengths] * (lengths is not None)
    if not all(isinstance(t, taeda.Tensor) for t in parts):
        refuse("a nested tensor of what is no tensor")
    if any(t.dtype is not taeda.int64 or t.ndim != 1 for t in parts[1:]):
        refuse("offsets of a nested tensor are no row of int64")
    count = offsets.shape[0] - 1
    if count < 0 or (lengths is not None and lengths.shape[0] != count):
        refuse(f"a nested tensor of {count} entries")
    if type(place) is not int or not 1 <= place <= values.ndim:
        refuse(f"a ragged dim at {short(place)}")
    return _rebuilt(values, offsets, lengths, place)


_PLAIN = (tensor_v1, tensor_v2, tensor_v3, parameter, meta_tensor, sparse_tensor)
_PLAIN += (wrapper_subclass,)

FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor"): tensor_v1,
    ("torch._utils", "_rebuild_tensor_v2"): tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): tensor_v3,
    ("torch._utils", "_rebuild_parameter"): parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): parameter_with_state,
    ("torch._utils", "_rebuild_sparse_tensor"): sparse_tensor,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): meta_tensor,
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"): device_tensor_from_cpu,
    ("torch._utils", "_rebuild_wrapper_subclass"): wrapper_subclass,
    ("torch._tensor", "_rebuild_from_type_v2"): from_type_v2,
    ("torch.serialization", "_get_layout"): layout,
    ("torch.nested._tensor", "_rebuilt"): nested,
}
