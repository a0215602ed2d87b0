"""Storages: bytes behind tensors, and their old typed view."""

from __future__ import annotations

import os

import taeda
from taeda._io.storages import STORAGE_DTYPES, storage_bytes
from taeda._storage import CASTS, decoded, shown

__all__ = ["TypedStorage", "UntypedStorage", *STORAGE_DTYPES]  # noqa: F822


class TypedStorage:
    """A storage seen as a sequence of one dtype; old programs name it.

    Args:
        args: a length or a sequence of numbers. wrap_storage (UntypedStorage): the
            bytes, instead. dtype: of the elements. device: where.

    Example:
        >>> taeda.TypedStorage([1.0, 2.0], dtype=taeda.float32).tolist()
        [1.0, 2.0]
    """

    def __init__(
        self, *args, wrap_storage=None, dtype=None, device=None, _internal=False
    ) -> None:
        self.dtype = dtype or taeda.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError("wrap_storage excludes positional arguments")
            self._untyped_storage = wrap_storage
            return
        given = args[0] if args else 0
        if hasattr(given, "__index__") and not hasattr(given, "__len__"):
            tensor = taeda.empty(int(given), dtype=self.dtype, device=device)
        else:
            tensor = taeda.tensor(list(given), dtype=self.dtype, device=device)
        self._untyped_storage = tensor.untyped_storage()

    def untyped(self):
        """The bytes."""
        return self._untyped_storage

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _tensor(self):
        empty = taeda.empty(0, dtype=self.dtype, device=self.device)
        return empty.set_(self._untyped_storage, 0, (self.size(),), (1,))

    @property
    def device(self):
        """Where the bytes are."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Are the bytes on a CUDA device?"""
        return self.device.type == "cuda"

    def size(self) -> int:
        """How many elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def nbytes(self) -> int:
        """How many bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._untyped_storage.data_ptr()

    def _readable(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("TypedStorage: Not available for 'meta' device")

    def __getitem__(self, idx):
        self._readable()
        value = self._tensor()[idx]
        if value.dim() == 0:
            return value.item()
        return TypedStorage(
            wrap_storage=value.clone().untyped_storage(), dtype=self.dtype
        )

    def __setitem__(self, idx, value) -> None:
        self._readable()
        self._tensor()[idx] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list:
        """The elements."""
        return self._tensor().tolist()

    def fill_(self, value) -> TypedStorage:
        """Set every element."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of another storage."""
        self._tensor().copy_(source._tensor(), bool(non_blocking))
        return self

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.element_size())

    def _moved(self, tensor) -> TypedStorage:
        storage = tensor.untyped_storage()
        return TypedStorage(wrap_storage=storage, dtype=tensor.dtype)

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._moved(self._tensor().clone())

    def cpu(self) -> TypedStorage:
        """On the CPU."""
        return self._moved(self._tensor().cpu())

    def to(self, *, device, non_blocking: bool = False) -> TypedStorage:
        """On another device."""
        return self._moved(self._tensor().to(device, non_blocking=non_blocking))

    def type(self, dtype=None, non_blocking: bool = False):
        """The name of the old storage class, or a converted copy."""
        if dtype is None:
            name = str(self.dtype).rpartition(".")[2]
            kinds = {value: key for key, value in STORAGE_DTYPES.items()}
            return f"{taeda.__name__}.{kinds.get(name, 'UntypedStorage')}"
        return self._moved(self._tensor().to(dtype))

    def share_memory_(self) -> TypedStorage:
        """Move the bytes to shared memory."""
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Can other processes map the bytes, or are they a file's?"""
        return self._untyped_storage.is_shared()

    _share_memory_, _is_shared = share_memory_, is_shared

    def _new_shared(self, size: int, *, device=None) -> TypedStorage:
        """A fresh storage of as many elements in shared memory."""
        made = taeda.UntypedStorage._new_shared(
            size * self.element_size(), device=device or "cpu"
        )
        return TypedStorage(wrap_storage=made, dtype=self.dtype)

    @property
    def filename(self):
        """The file that `from_file` mapped with `shared`; else None."""
        return self._untyped_storage.filename

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage over the first elements of a file, of the default dtype."""
        tensor = from_file(filename, shared, size)
        return cls(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)

    @classmethod
    def from_buffer(
        cls, buffer, byte_order=None, count=-1, offset=0, *, dtype=None, device=None
    ) -> TypedStorage:
        """A storage with a copy of a buffer's elements."""
        dtype = dtype or taeda.get_default_dtype()
        data = memoryview(buffer).cast("B")
        made = decoded(data, byte_order, count, offset, dtype.itemsize)
        return cls(wrap_storage=made.to(device=device or "cpu"), dtype=dtype)

    def resizable(self) -> bool:
        """Can the length change?"""
        return self._untyped_storage.resizable()

    def get_device(self) -> int:
        """The device's number; -1 for the CPU."""
        return self._untyped_storage.get_device()

    def is_pinned(self, device=None) -> bool:
        """Is the memory page-locked for an accelerator?"""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device=None) -> TypedStorage:
        """A copy in page-locked memory."""
        return self._moved(self._tensor().pin_memory())

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        """A copy on a CUDA device."""
        return self._moved(self._tensor().cuda(device, non_blocking=non_blocking))

    def hpu(self, device=None, non_blocking: bool = False):
        """A copy on a Habana device; AssertionError, this build knows none."""
        return self._untyped_storage.hpu(device, non_blocking)

    @property
    def is_hpu(self) -> bool:
        """Are the bytes on a Habana device? This library knows none."""
        return self.device.type == "hpu"

    def pickle_storage_type(self) -> str:
        """The name of the old storage class."""
        return self.type().rpartition(".")[2]

    def __repr__(self) -> str:
        return shown(self, f"dtype={self.dtype}, device={self.device}")

    def __eq__(self, other) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.dtype == other.dtype and self.data_ptr() == other.data_ptr()

    __hash__ = object.__hash__

    def __deepcopy__(self, memo):
        """A copy that shares its bytes with copies of what shares them."""
        bytes_ = self._untyped_storage.__deepcopy__(memo)
        return type(self)(wrap_storage=bytes_, dtype=self.dtype)

    def __reduce__(self):
        data = bytes(storage_bytes(self._untyped_storage.cpu()))
        return (_from_bytes, (self.dtype, data))


def _cast(name: str, dtype: str):
    def convert(self) -> TypedStorage:
        return self._moved(self._tensor().to(getattr(taeda, dtype), copy=True))

    convert.__name__ = name
    convert.__qualname__ = f"TypedStorage.{name}"
    convert.__doc__ = f"The elements as {dtype}."
    return convert


for _name, _dtype in CASTS.items():
    setattr(TypedStorage, _name, _cast(_name, _dtype))


def _from_bytes(dtype, data: bytes) -> TypedStorage:
    storage = taeda.UntypedStorage(len(data))
    storage_bytes(storage)[:] = data
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _old_class(name: str, dtype_name: str):
    """FloatStorage and so on: constructors of TypedStorage with a fixed dtype."""

    class _Kind(type):
        def __instancecheck__(cls, value) -> bool:
            return isinstance(value, TypedStorage) and value.dtype == cls.dtype

        @property
        def dtype(cls):
            return getattr(taeda, dtype_name)

    def make(cls, *args, **kwargs):
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def buffered(cls, buffer, byte_order=None, count=-1, offset=0) -> TypedStorage:
        """A storage with a copy of a buffer's elements."""
        return TypedStorage.from_buffer(
            buffer, byte_order, count, offset, dtype=cls.dtype
        )

    def of_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """A storage over the first elements of a file."""
        made = from_file(filename, shared, size, dtype=cls.dtype)
        return TypedStorage(wrap_storage=made.untyped_storage(), dtype=cls.dtype)

    body = {
        "__new__": make,
        "__doc__": f"A TypedStorage of {dtype_name}.",
        "__module__": taeda.__name__,
        "from_buffer": classmethod(buffered),
        "from_file": classmethod(of_file),
    }
    return _Kind(name, (), body)


class _AnyStorage(type):
    def __call__(cls, *args, **kwargs):
        raise RuntimeError(
            "Cannot directly construct StorageBase; UntypedStorage is what there is"
        )

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, taeda.UntypedStorage)

    def __subclasscheck__(cls, kind) -> bool:
        return cls is kind or issubclass(kind, taeda.UntypedStorage)


class StorageBase(metaclass=_AnyStorage):
    """What untyped storages are instances of; making one is a RuntimeError."""


StorageBase.__module__ = "taeda"


def __getattr__(name: str):
    # There is one class of storages; PyTorch's has a base of its own.
    if name in ("UntypedStorage", "StorageBase"):
        return taeda.UntypedStorage
    if name == "Storage":  # as PyTorch names it, whatever the default dtype
        return taeda.FloatStorage
    if name in STORAGE_DTYPES:
        made = globals()[name] = _old_class(name, STORAGE_DTYPES[name])
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def from_file(
    filename,
    shared=None,
    size=0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor over a file's first elements.

    Args:
        filename: its path.
        shared: writes go to the file, which is made longer where it is too short.
        size: how many elements.
        dtype: theirs.
        layout, device, pin_memory: only strided tensors on the CPU can be asked.
        requires_grad: as for `taeda.empty`.

    Raises:
        RuntimeError: the file is shorter and not shared, or cannot be opened.
    """
    place = taeda.device(device or "cpu")
    if place.type != "cpu" or layout not in (None, taeda.strided):
        raise NotImplementedError(
            f"from_file: makes strided CPU tensors, not {layout} on {place}"
        )
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    if size < 0:
        raise RuntimeError(f"from_file: negative size {size}")
    tensor = taeda.empty(0, dtype=dtype, requires_grad=requires_grad)
    nbytes = size * tensor.dtype.itemsize
    storage = taeda._C._map_file(os.fspath(filename), bool(shared), nbytes)
    with taeda.no_grad():
        return tensor.set_(storage, 0, (size,), (1,))
