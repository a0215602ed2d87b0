"""How tensors and storages are written for another process of this machine.

Bytes of the CPU move to shared memory, once (those of GPUs: `_cuda_sharing.py`), and
what is sent tells where they are: a descriptor, or a name
(`taeda.multiprocessing.set_sharing_strategy`). A process that gets the same bytes twice
has one storage of them.
"""

from __future__ import annotations

from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler

import taeda
from taeda import _C

__all__ = [
    "ForkingPickler",
    "init_reductions",
    "rebuild_storage_fd",
    "rebuild_storage_file",
    "rebuild_storage_filename",
    "rebuild_tensor",
    "rebuild_typed_storage",
    "reduce_storage",
    "reduce_tensor",
    "reduce_typed_storage",
]


# Storages -----------------------------------------------------------------------


def rebuild_storage_fd(descriptor, nbytes: int):
    """The storage behind a descriptor that came with the message."""
    return _C._open_shared_descriptor(descriptor.detach(), nbytes)


def rebuild_storage_filename(name: str, nbytes: int):
    """The storage behind the name of a shared memory object."""
    storage = _C._open_shared_name(name, nbytes)
    _C._release_shared_name(storage)  # the message's use ends
    return storage


def rebuild_storage_file(path: str, nbytes: int):
    """The storage over a file that both processes map."""
    return _C._map_file(path, True, nbytes)


def reduce_storage(storage):
    """What to send of a storage; those of the CPU move to shared memory.

    Raises:
        NotImplementedError: it is neither on the CPU nor on a GPU.
    """
    nbytes = storage.nbytes()
    if storage.device.type == "cuda":
        from taeda.multiprocessing._cuda_sharing import reduce_cuda_storage

        return reduce_cuda_storage(storage)
    if storage.device.type != "cpu":
        raise NotImplementedError(
            f"sending a storage on {storage.device} to another process is not "
            "implemented"
        )
    if nbytes == 0:
        return taeda.UntypedStorage, (0,)
    if storage.is_shared() and _C._shared_memory_of(storage)[0] == "file":
        if storage.filename is not None:
            return rebuild_storage_file, (storage.filename, nbytes)
        storage = storage.clone()  # of a private mapping nobody else sees a change
    storage.share_memory_()
    kind, descriptor, name = _C._shared_memory_of(storage)
    if kind == "descriptor":
        return rebuild_storage_fd, (reduction.DupFd(descriptor), nbytes)
    _C._retain_shared_name(storage)
    return rebuild_storage_filename, (name, nbytes)


def rebuild_typed_storage(storage, dtype):
    """A typed storage over these bytes."""
    return taeda.storage.TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage):
    """What to send of a typed storage."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_typed_storage_child(storage, storage_type):
    """A storage of an old class, such as `taeda.FloatStorage`, over these bytes."""
    return storage_type(wrap_storage=storage)


def reduce_typed_storage_child(storage):
    """What to send of a typed storage by the name of its old class."""
    kind = getattr(taeda, storage.pickle_storage_type())
    return rebuild_typed_storage_child, (storage.untyped(), kind)


# Tensors ------------------------------------------------------------------------


def rebuild_tensor(cls: type, storage, geometry: tuple, requires_grad: bool):
    """The tensor with this place in a storage.

    Args:
        cls: Tensor or Parameter.
        storage: the bytes; None for a meta tensor.
        geometry: dtype, offset, sizes, strides.
        requires_grad: of the result.
    """
    dtype, offset, sizes, strides = geometry
    if storage is None:
        tensor = taeda.empty_strided(sizes, strides, dtype=dtype, device="meta")
    else:
        empty = taeda.empty(0, dtype=dtype, device=storage.device)
        tensor = empty.set_(storage, offset, sizes, strides)
    if cls is taeda.nn.Parameter:
        return cls(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def reduce_tensor(tensor):
    """What to send of a tensor; its bytes move to shared memory.

    Raises:
        RuntimeError: it has a history, which does not reach other processes.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
            "autograd does not support crossing process boundaries: call detach() first"
        )
    plain = tensor.detach()
    if plain.layout != taeda.strided:
        from taeda._tensor_copy import reduce_tensor as copied

        return copied(tensor)
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    geometry = plain.dtype, plain.storage_offset(), tuple(plain.shape), plain.stride()
    storage = None if plain.device.type == "meta" else plain.untyped_storage()
    return rebuild_tensor, (type(tensor), storage, geometry, tensor.requires_grad)


def init_reductions() -> None:
    """Tells the pickler of `multiprocessing` about tensors and storages."""
    ForkingPickler.register(taeda.Tensor, reduce_tensor)
    ForkingPickler.register(taeda.nn.Parameter, reduce_tensor)
    ForkingPickler.register(taeda.UntypedStorage, reduce_storage)
    ForkingPickler.register(taeda.storage.TypedStorage, reduce_typed_storage)
