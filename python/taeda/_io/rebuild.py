"""Tensors from what a checkpoint says about them, checked before anything is made."""

from __future__ import annotations

from _pickle import UnpicklingError
from _thread import _local

import taeda

_MAX = 2**63 - 1


def refuse(text: str):
    """Raise the error of a checkpoint that cannot be right."""
    raise UnpicklingError(f"the checkpoint is damaged: {text}")


def _ints(value, what: str) -> tuple:
    if not isinstance(value, (tuple, list)):
        refuse(f"{what} is {type(value).__name__}, not a tuple")
    for entry in value:
        if type(entry) is not int or not 0 <= entry <= _MAX:
            refuse(f"{what} contains {entry!r:.40}")
    return tuple(value)


def check_geometry(elements: int, offset, size, stride) -> tuple[tuple, tuple]:
    """Refuse a tensor that reaches outside a storage of `elements` elements."""
    size, stride = _ints(size, "a size"), _ints(stride, "a stride")
    _ints((offset,), "an offset")
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
        refuse(f"expected a dtype, got {dtype!r:.40}")
    elements = untyped.nbytes() // dtype.itemsize
    size, stride = check_geometry(elements, offset, size, stride)
    empty = taeda.empty((0,), dtype=dtype, device=untyped.device)
    return empty.set_(untyped, offset, size, stride)


def _finish(tensor, requires_grad, metadata):
    if requires_grad:
        tensor.requires_grad_(True)
    for name in metadata or ():
        if not metadata[name]:
            continue
        if name == "conj":
            tensor = tensor.conj()
        elif name == "neg":
            tensor = tensor._neg_view()
        else:
            refuse(f"unknown tensor metadata {name!r:.40}")
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
    if not isinstance(data, taeda.Tensor):
        refuse(f"a parameter made of {type(data).__name__}")
    return taeda.nn.Parameter(data, bool(requires_grad))


def parameter_with_state(data, requires_grad, hooks, state):
    """torch._utils._rebuild_parameter_with_state."""
    return _with_state(parameter(data, requires_grad, hooks), state)


def _with_state(tensor, state):
    """Attributes that the user had set on a tensor."""
    parts = state if isinstance(state, tuple) else (state,)
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, dict):
            refuse(f"attributes of a tensor in {type(part).__name__}")
        for name, value in part.items():
            setattr(tensor, name, value)
    return tensor


def from_type_v2(function, kind, args, state):
    """torch._tensor._rebuild_from_type_v2: a subclass, or attributes on a tensor."""
    if function not in _PLAIN:
        refuse(f"a tensor rebuilt by {function!r:.60}")
    tensor = function(*args)
    if kind is not taeda.Tensor and type(tensor) is not kind:
        if not (isinstance(kind, type) and issubclass(kind, taeda.Tensor)):
            refuse(f"{kind!r:.60} is no tensor class")
        tensor = tensor.as_subclass(kind)
    return _with_state(tensor, state)


def meta_tensor(dtype, size, stride, requires_grad):
    """torch._utils._rebuild_meta_tensor_no_storage."""
    size, stride = check_geometry(_MAX, 0, size, stride)
    return taeda.empty_strided(
        size, stride, dtype=dtype, device="meta", requires_grad=bool(requires_grad)
    )


def layout(name):
    """torch.serialization._get_layout."""
    kinds = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
    short = str(name).rpartition(".")[2]
    if short not in kinds:
        refuse(f"unknown layout {name!r:.40}")
    return getattr(taeda, short)


def check_sparse(tensor) -> None:
    """Refuse indices outside the tensor, or a false claim of order."""
    try:
        taeda._validate_sparse_coo_tensor_args(
            tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced()
        )
    except RuntimeError as error:
        refuse(str(error))


class sparse_later:
    """Sparse tensors made in this block are checked at its end.

    The old format names tensors before their storages have been read.
    """

    def __enter__(self) -> None:
        _later.sparse = []

    def __exit__(self, kind, value, traceback) -> None:
        waiting, _later.sparse = _later.sparse, None
        if kind is None:
            for tensor in waiting:
                check_sparse(tensor)


_later = _local()


def sparse_tensor(kind, data):
    """torch._utils._rebuild_sparse_tensor; indices are checked."""
    if not isinstance(kind, taeda.layout):
        refuse(f"{kind!r:.40} is no layout")
    short = str(kind).rpartition(".")[2]
    maker = "sparse_coo_tensor" if short == "sparse_coo" else "sparse_compressed_tensor"
    if not hasattr(taeda, maker):
        raise NotImplementedError(f"load: {maker} does not exist yet")
    if short == "sparse_coo":
        indices, values, size = data[:3]
        coalesced = bool(data[3]) if len(data) > 3 else None
        tensor = taeda.sparse_coo_tensor(indices, values, size, check_invariants=False)
        if coalesced:
            tensor._coalesced_(True)
        waiting = getattr(_later, "sparse", None)
        if waiting is None:
            check_sparse(tensor)
        else:
            waiting.append(tensor)
        return tensor
    if short in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        compressed, plain, values, size = data
        return taeda.sparse_compressed_tensor(
            compressed, plain, values, size, layout=kind, check_invariants=True
        )
    raise NotImplementedError(f"loading tensors of layout {kind}")


def device_tensor_from_cpu(data, dtype, device, requires_grad):
    """torch._utils._rebuild_device_tensor_from_cpu_tensor."""
    if not isinstance(data, taeda.Tensor):
        refuse(f"a tensor made of {type(data).__name__}")
    return _finish(data.to(dtype=dtype, device=device), requires_grad, None)


_PLAIN = (tensor_v1, tensor_v2, tensor_v3, parameter, meta_tensor, sparse_tensor)

FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor"): tensor_v1,
    ("torch._utils", "_rebuild_tensor_v2"): tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): tensor_v3,
    ("torch._utils", "_rebuild_parameter"): parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): parameter_with_state,
    ("torch._utils", "_rebuild_sparse_tensor"): sparse_tensor,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): meta_tensor,
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"): device_tensor_from_cpu,
    ("torch._tensor", "_rebuild_from_type_v2"): from_type_v2,
    ("torch.serialization", "_get_layout"): layout,
}
