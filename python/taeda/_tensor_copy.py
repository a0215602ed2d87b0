"""Copies and pickles of tensors."""

from __future__ import annotations

import taeda
from taeda import _C


def deepcopy_tensor(tensor, memo):
    """A copy that shares storages with other copies made by the same deepcopy."""
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol: this one was computed, so detach() it first, or have a "
            "module compute it in forward()"
        )
    made = memo.get(id(tensor))
    if made is not None:
        return made
    made = _copied(tensor, memo)
    if tensor.requires_grad:
        made.requires_grad_()
    if tensor.grad is not None:
        made.grad = tensor.grad.__deepcopy__(memo)
    if type(tensor) is not taeda.Tensor and type(made) is not type(tensor):
        made = made.as_subclass(type(tensor))
    memo[id(tensor)] = made
    if type(tensor) is not taeda.Tensor or tensor.__dict__:
        import copy

        give_state(made, copy.deepcopy(own_state(tensor), memo))
    return made


def own_state(tensor):
    """The attributes that copies and pickles take along.

    What `__getstate__` says where the class has one; else the dict, with the values of
    `__slots__` beside it if there are any.
    """
    cls = type(tensor)
    if cls is taeda.Tensor:
        return dict(tensor.__dict__)
    getstate = getattr(cls, "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return tensor.__getstate__()
    import copyreg

    names = [n for n in copyreg._slotnames(cls) if hasattr(tensor, n)]
    if not names:
        return dict(tensor.__dict__)
    return dict(tensor.__dict__), {n: getattr(tensor, n) for n in names}


def give_state(tensor, state) -> None:
    """The inverse of `own_state`."""
    setstate = type(tensor).__setstate__
    if setstate is not taeda.Tensor.__setstate__:
        tensor.__setstate__(state)
    else:
        set_tensor_state(tensor, state)


def make_wrapper(cls, size, strides, offset, memory_format, dtype, device):
    """See `Tensor._make_wrapper_subclass`."""
    if not _C._has_torch_dispatch(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if memory_format is not None and strides is None:
        like = _C._VariableFunctions.empty(
            tuple(size), device="meta", memory_format=memory_format
        )
        strides = like.stride()
    device = taeda.get_default_device() if device is None else taeda.device(device)
    return _C._make_wrapper_subclass(
        cls,
        tuple(size),
        strides if strides is None else tuple(strides),
        offset or 0,
        taeda.get_default_dtype() if dtype is None else dtype,
        device,
    )


def _copied(tensor, memo):
    if _C._has_torch_dispatch(type(tensor)) and tensor.data_ptr() == 0:
        with taeda.no_grad():
            made = tensor.clone()
        if type(made) is not type(tensor):
            raise RuntimeError(
                "The default implementation of __deepcopy__() for wrapper subclasses "
                "only works for subclass types that properly implement clone() and for "
                "which cloning returns another instance of the same subclass: "
                f"{type(tensor).__name__}.clone() gives a {type(made).__name__}"
            )
        return made
    if tensor.layout is not _C.strided:
        return tensor.detach().clone()
    if tensor.is_meta:
        return _C._VariableFunctions.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
        )
    storage = tensor.untyped_storage().__deepcopy__(memo)
    made = taeda.empty(0, dtype=tensor.dtype, device=tensor.device)
    return made.set_(
        storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    )


def reduce_tensor(tensor):
    """What pickle stores of a tensor: its storage and geometry."""
    from collections import OrderedDict

    if tensor.layout is not _C.strided:
        return _reduce_sparse(tensor)
    from taeda._io import rebuild, writer

    if writer.is_wrapper(tensor):
        made = rebuild.wrapper_subclass, type(tensor), writer.wrapper_facts(tensor)
        return rebuild_from_type, (*made, own_state(tensor))
    args = (
        tensor._typed_storage(),
        tensor.storage_offset(),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.requires_grad,
        OrderedDict(),
    )
    if type(tensor) is taeda.Tensor and not tensor.__dict__:
        return rebuild_tensor, args
    made = rebuild_tensor, type(tensor), args
    return rebuild_from_type, (*made, own_state(tensor))


def _reduce_sparse(tensor):
    """The same of a sparse tensor: its parts."""
    from taeda._io.rebuild import sparse_tensor
    from taeda._io.writer import sparse_data

    args = tensor.layout, sparse_data(tensor)
    if type(tensor) is taeda.Tensor and not tensor.__dict__:
        return sparse_tensor, args
    made = sparse_tensor, type(tensor), args
    return rebuild_from_type, (*made, own_state(tensor))


def rebuild_tensor(storage, offset, size, stride, requires_grad, hooks):
    """The inverse of `reduce_tensor`."""
    from taeda._io.rebuild import tensor_v2

    return tensor_v2(storage, offset, size, stride, requires_grad, hooks)


def rebuild_from_type(function, kind, args, state):
    """The inverse of `reduce_tensor` for subclasses and tensors with attributes."""
    made = function(*args)
    if type(made) is not kind:
        made = made.as_subclass(kind)
    give_state(made, state)
    return made


def set_tensor_state(tensor, state) -> None:
    """Attributes that a pickle carries."""
    parts = state if isinstance(state, tuple) else (state,)
    for part in parts:
        if isinstance(part, dict):
            for name, value in part.items():
                setattr(tensor, name, value)


def set_memory(tensor, source, offset: int, size, stride):
    """What Tensor.set_ does; sizes default to all of the storage."""
    if tensor.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(
            "set_: not allowed on a tensor that requires grad; use no_grad"
        )
    if source is None:
        source = tensor.detach().new_empty((0,))
    is_tensor = isinstance(source, _C.TensorBase)
    if is_tensor and size is None:
        _C._set_tensor(tensor, source)
        return tensor
    storage = source.untyped_storage() if is_tensor else source
    if not isinstance(storage, _C.UntypedStorage):
        if storage.dtype != tensor.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {tensor.dtype} or an UntypedStorage, but "
                f"got type {storage.dtype} for argument 1 'storage'"
            )
        storage = storage._untyped_storage
    if size is None:
        size = (storage.nbytes() // tensor.itemsize,)
    if stride is None:
        steps = [1]
        for length in reversed(size[1:]):
            steps.append(steps[-1] * max(length, 1))
        stride = steps[::-1] if len(size) else ()
    _check_within(tensor, storage, offset, size, stride)
    _C._set_storage(tensor, storage, offset, size, stride)
    return tensor


def _check_within(tensor, storage, offset: int, size, stride) -> None:
    """A tensor that keeps its shape is not the place to lengthen a storage."""
    if tuple(size) != tuple(tensor.shape) or 0 in size or min(stride, default=0) < 0:
        return
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    needed = (offset + last + 1) * tensor.itemsize
    if needed > storage.nbytes():
        raise RuntimeError(
            f"set_: sizes {[*size]}, strides {[*stride]} and storage offset {offset} "
            f"need {needed} bytes and are out of bounds for storage of size "
            f"{storage.nbytes()}"
        )
