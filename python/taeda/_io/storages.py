"""Storages by name, and their bytes."""

from __future__ import annotations

import taeda

# The names in files, from PyTorch's storage classes. Other dtypes are written as
# UntypedStorage, with the dtype beside it.
STORAGE_DTYPES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
_NAMES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
# What storage_name found; two threads may write the same answer.
_found_names: dict = {}


def storage_name(dtype) -> str | None:
    """The file's name for storages of a dtype, or None."""
    found = _found_names.get(dtype, "")
    if found == "":
        found = _NAMES.get(str(dtype).rpartition(".")[2])
        _found_names[dtype] = found
    return found


def storage_bytes(storage) -> memoryview:
    """The bytes of a CPU storage, writable, without a copy.

    The storage must outlive the view.
    """
    count = storage.nbytes()
    if count == 0:
        return memoryview(bytearray())
    try:
        return memoryview(storage).cast("B")
    except TypeError:
        import ctypes

        block = (ctypes.c_char * count).from_address(storage.data_ptr())
        return memoryview(block).cast("B")


def lazy_flags(tensor) -> list[str]:
    """Which of "conj" and "neg" are pending on a tensor."""
    if not tensor.dtype.is_complex and not hasattr(tensor, "is_neg"):
        return []
    flags = ((name, getattr(tensor, f"is_{name}", None)) for name in ("conj", "neg"))
    return [name for name, test in flags if test is not None and test()]


def on_cpu(storage):
    """The storage itself or a copy of it on the CPU."""
    return storage if storage.device.type == "cpu" else storage.cpu()


def identity(storage):
    """What two handles of one storage share."""
    handle = getattr(storage, "_cdata", None)
    if handle is not None:
        return handle
    return (str(storage.device), storage.data_ptr() or id(storage))


def swap_bytes(view: memoryview, width: int) -> None:
    """Reverse the bytes of every element, for files of the other byte order."""
    data = bytes(view)
    for i in range(width):
        view[i::width] = data[width - 1 - i :: width]


def byte_width(dtype) -> int:
    """Bytes of one number: half an element for complex dtypes."""
    size = dtype.itemsize
    return size // 2 if dtype.is_complex else size


def mapped_storage(offset: int, count: int, mapping):
    """A storage over bytes of a mapped file; `mapping` is an mmap object."""
    block = taeda.frombuffer(mapping, dtype=taeda.uint8, count=count, offset=offset)
    return block.untyped_storage()
