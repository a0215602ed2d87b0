"""Methods of UntypedStorage that need no access to its memory of their own."""

from __future__ import annotations

import operator

import taeda
from taeda import _C

__all__ = ["CASTS", "attach", "decoded", "shown"]

# A storage's conversions: method -> dtype of the result.
CASTS = {
    **{name: name for name in ("bfloat16", "bool", "double", "float", "half")},
    **{name: name for name in ("int", "long", "short")},
    **{f"float8_{form}": f"float8_{form}" for form in ("e4m3fn", "e5m2")},
    **{f"float8_{form}fnuz": f"float8_{form}fnuz" for form in ("e4m3", "e5m2")},
    "byte": "uint8",
    "char": "int8",
    "complex_double": "complex128",
    "complex_float": "complex64",
}


def _seen(storage):
    """The storage's bytes as a tensor."""
    empty = taeda.empty(0, dtype=taeda.uint8, device=storage.device)
    return empty.set_(storage, 0, (storage.nbytes(),), (1,))


def _cast(name: str, dtype: str):
    def convert(self):
        tensor = _seen(self).to(getattr(taeda, dtype), copy=True)
        return taeda.storage.TypedStorage(
            wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype
        )

    convert.__name__ = name
    convert.__qualname__ = f"UntypedStorage.{name}"
    convert.__doc__ = f"The bytes' values as a typed storage of {dtype}."
    return convert


def _by_name() -> bool:
    import sys

    module = sys.modules.get("taeda.multiprocessing")
    return module is not None and module.get_sharing_strategy() == "file_system"


def share_memory_(self, *args, **kwargs):
    """Moves the bytes to memory that other processes can map.

    How they will find it is `taeda.multiprocessing.set_sharing_strategy`'s choice. What
    is shared already and what lies on a CUDA device stays; the length is fixed then.

    Raises:
        RuntimeError: the storage is on another device, or there is no room.
    """
    if self.device.type != "cuda":
        _C._share_memory(self, _by_name())
    return self


def is_shared(self) -> bool:
    """Can other processes map the bytes, or are they a file's?"""
    return self.is_cuda or _C._shared_memory_of(self) is not None


@property
def filename(self):
    """The file that `from_file` mapped with `shared`; else None."""
    kind, _, name = _C._shared_memory_of(self) or ("", -1, "")
    return name if kind == "file" and name else None


def from_file(filename, shared: bool = False, nbytes: int = 0):
    """A storage over the first bytes of a file.

    Args:
        filename: its path.
        shared: changes go to the file, which is made longer where it is too short.
        nbytes: how many; all of them when 0.

    Raises:
        RuntimeError: the file is shorter and not shared, or cannot be opened.
    """
    import os

    path = os.fspath(filename)
    if nbytes == 0 and os.path.exists(path):
        nbytes = os.path.getsize(path)
    return _C._map_file(path, shared, nbytes)


def _new_shared(size: int, *, device="cpu"):
    """A fresh storage in shared memory."""
    if taeda.device(device).type != "cpu":
        return taeda.UntypedStorage(size, device=device)
    return _C._new_shared_storage(size, _by_name())


def from_buffer(buffer, byte_order=None, count=-1, offset=0, dtype=None):
    """A storage with a copy of a buffer's elements.

    Args:
        buffer: what has bytes.
        byte_order: "big" or "little", that of the buffer; needed for elements of more
            than one byte.
        count: how many elements; all that follow `offset` when -1.
        offset: bytes to leave out.
        dtype: of the elements; one byte each by default.
    """
    width = dtype.itemsize if dtype is not None else 1
    return decoded(memoryview(buffer).cast("B"), byte_order, count, offset, width)


def decoded(data: memoryview, byte_order, count: int, offset: int, width: int):
    """The elements of a buffer in this machine's byte order, as a new storage."""
    import sys

    if byte_order is None and width > 1:
        raise TypeError("from_buffer: missing argument 'byte_order'")
    if byte_order not in (None, "native", "big", "little"):
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big' or 'little')"
        )
    if not 0 <= offset <= len(data):
        raise ValueError(
            "offset must be non-negative and no greater than buffer length "
            f"({len(data)}), but got {offset}"
        )
    room = len(data) - offset
    if count < 0:
        if room % width:
            raise ValueError(
                f"buffer size ({len(data)}) must be a multiple of element size "
                f"({width})"
            )
        count = room // width
    elif count * width > room:
        raise ValueError(
            f"buffer has only {room // width} elements after offset {offset}, but "
            f"specified a size of {count}"
        )
    made = taeda.UntypedStorage(count * width)
    if count:
        memoryview(made)[:] = data[offset : offset + count * width]
        if byte_order not in (None, "native", sys.byteorder):
            _swap(made, width)
    return made


def _swap(storage, width: int) -> None:
    if width > 1 and storage.nbytes():
        rows = _seen(storage).view(-1, width)
        rows.copy_(rows.flip(1))


def byteswap(self, dtype) -> None:
    """Reverses the bytes of each element, in place.

    A complex number's two parts are swapped each on their own.
    """
    _swap(self, dtype.itemsize // (2 if dtype.is_complex else 1))


def to(self, *, device, non_blocking: bool = False):
    """The storage on a device: itself where it is there already."""
    if taeda.device(device) == self.device:
        return self
    return _seen(self).to(device, non_blocking=non_blocking).untyped_storage()


def cuda(self, device=None, non_blocking: bool = False):
    """A copy on a CUDA device."""
    return _seen(self).cuda(device, non_blocking=non_blocking).untyped_storage()


def type(self, dtype=None, non_blocking: bool = False):
    """The class's name, or a converted copy."""
    if dtype is None:
        return f"{taeda.__name__}.storage.UntypedStorage"
    tensor = _seen(self).to(dtype, copy=True)
    return taeda.storage.TypedStorage(
        wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype
    )


def new(self, *args, **kwargs):
    """An empty storage, or as the constructor makes it, on the same device."""
    return taeda.UntypedStorage(*args, **{"device": self.device, **kwargs})


def is_pinned(self, device=None) -> bool:
    """Is the memory page-locked for an accelerator?"""
    return _seen(self).is_pinned()


def pin_memory(self, device=None):
    """A copy in page-locked memory."""
    return _seen(self).pin_memory().untyped_storage()


def cpu(self):
    """The storage in the CPU's memory: itself where it is there already."""
    return self.to(device="cpu")


def untyped(self):
    """The storage itself, as the method of typed ones gives what they hold."""
    return self


def element_size(self) -> int:
    """The size of a byte: 1."""
    return 1


def get_device(self) -> int:
    """The index of the device; -1 on the CPU."""
    return -1 if self.device.index is None else self.device.index


@property
def is_cuda(self) -> bool:
    """Whether the memory is a GPU's."""
    return self.device.type == "cuda"


@property
def is_hpu(self) -> bool:
    """False: no such memory here."""
    return False


is_sparse = is_hpu


def tolist(self) -> list[int]:
    """Its bytes as a list of ints."""
    return list(memoryview(self.cpu()))


def __iter__(self):
    return iter(self.tolist())


def __deepcopy__(self, memo):
    if self._cdata not in memo:
        memo[self._cdata] = self.clone()
    return memo[self._cdata]


def __sizeof__(self) -> int:
    return object.__sizeof__(self) + self.nbytes()


def _part(self, index):
    """A byte or a slice, over the same memory."""
    size = len(self)
    if isinstance(index, slice):
        start, stop, step = index.indices(size)
        if step != 1:
            raise RuntimeError(f"slices of storages must have step 1, got {step}")
        return self._slice(start, max(0, stop - start))
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} out of range for storage of size {size}")
    return self._slice(index % size, 1)


def __getitem__(self, index):
    part = _part(self, index)
    return part if isinstance(index, slice) else part.tolist()[0]


def __setitem__(self, index, byte) -> None:
    _part(self, index).fill_(byte)


_init = _C.UntypedStorage.__init__


def __init__(self, size=0, device=None) -> None:
    if isinstance(size, int):
        _init(self, size, device)
        return
    _init(self, len(size), device)
    memoryview(self)[:] = bytes(int(byte) & 255 for byte in size)


_METHODS = (
    "share_memory_ is_shared filename byteswap to cuda type new is_pinned pin_memory"
    " cpu untyped element_size get_device is_cuda is_hpu is_sparse tolist"
    " __iter__ __deepcopy__ __sizeof__ __getitem__ __setitem__ __init__"
)


def shown(storage, facts: str) -> str:
    """A storage as it is printed: its elements, one a line, and what it is.

    Args:
        storage: untyped or typed.
        facts: between the parentheses of the last line.
    """
    rows = "..."
    if storage.device.type != "meta":  # whose elements nobody can read
        rows = " " + "\n ".join(str(value) for value in storage.tolist())
    name = f"{taeda.__name__}.storage.{storage.__class__.__name__}"
    return f"{rows}\n[{name}({facts}) of size {storage.size()}]"


def _repr(self) -> str:
    return shown(self, f"device={self.device}")


def attach(cls: type) -> None:
    """Gives the class of storages its methods."""
    space = globals()
    for name in _METHODS.split():
        setattr(cls, name, space[name])
    for name in ("from_file", "from_buffer", "_new_shared"):
        setattr(cls, name, staticmethod(space[name]))
    cls.__repr__ = _repr
    for name, dtype in CASTS.items():
        setattr(cls, name, _cast(name, dtype))
