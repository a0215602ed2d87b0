"""The safetensors format.

From its public description (github.com/huggingface/safetensors): eight bytes with
the length of a JSON header (little-endian), the header, then the data. The header
maps each name to {"dtype", "shape", "data_offsets": [begin, end]} counted from the end
of the header, and "__metadata__" to a dictionary of strings. The tensors lie side by
side, without gaps, in row-major order; the header may be padded with spaces.
"""

from __future__ import annotations

import sys

import taeda
from taeda._io.limits import Allowance, short
from taeda._io.source import Source
from taeda._io.storages import byte_width, lazy_flags, storage_bytes, swap_bytes

DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_MAX_HEADER = 100_000_000
_MAX_DIMENSIONS = 64
# What Python makes of a sign in the header: an object, a list, an entry.
_PRICES = {"{": 250, "[": 90, ",": 80, ":": 80}


class SafetensorError(RuntimeError):
    """A file that does not follow the format, or tensors that it cannot hold."""


def _dtype_name(name: str, tensor) -> str:
    short = str(tensor.dtype).rpartition(".")[2]
    if short not in _NAMES:
        raise SafetensorError(f"tensor {name!r}: dtype {short} has no place in a file")
    return _NAMES[short]


def _check_tensors(tensors: dict) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"expected a dict of tensors, got {type(tensors).__name__}")
    owners: dict = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"the name of a tensor is {name!r}")
        if not isinstance(tensor, taeda.Tensor):
            kind = type(tensor).__name__
            raise ValueError(f"Key {name!r} is invalid, expected a tensor, got {kind}")
        if tensor.layout != taeda.strided:
            raise ValueError(f"tensor {name!r} is sparse: make it dense first")
        if tensor.numel():
            pointer = tensor.untyped_storage().data_ptr()
            other = owners.setdefault((tensor.device, pointer), name)
            if other != name:
                raise RuntimeError(
                    f"tensors {other!r} and {name!r} share memory, which the format "
                    "cannot express: save one of them, or a clone"
                )
        if not tensor.is_contiguous():
            raise ValueError(
                f"tensor {name!r} is not contiguous: call .contiguous() before saving"
            )


def _pieces(tensors: dict, metadata: dict | None):
    """The file in parts: the header, then the bytes of each tensor."""
    import json

    _check_tensors(tensors)
    header: dict = {}
    if metadata is not None:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise ValueError(f"metadata must be strings, got {key!r}: {value!r}")
        header["__metadata__"] = metadata
    # Wide elements first, so that every tensor is aligned to its element.
    order = sorted(tensors, key=lambda k: (-tensors[k].dtype.itemsize, k))
    at = 0
    for name in order:
        tensor = tensors[name]
        size = tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": _dtype_name(name, tensor),
            "shape": list(tensor.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        tensor = tensors[name].detach().cpu()
        if lazy_flags(tensor):
            tensor = tensor.resolve_conj().resolve_neg()
        width = tensor.dtype.itemsize
        start = tensor.storage_offset() * width
        view = storage_bytes(tensor.untyped_storage())
        view = view[start : start + tensor.numel() * width]
        if sys.byteorder == "big":
            view = memoryview(bytearray(view))
            swap_bytes(view, byte_width(tensor.dtype))
        yield view


def save(tensors: dict, metadata: dict | None = None) -> bytes:
    """The bytes of a file with `tensors`; arguments and errors as for `save_file`."""
    return b"".join(_pieces(tensors, metadata))


def save_file(tensors: dict, filename, metadata: dict | None = None) -> None:
    """Write tensors to a file.

    Args:
        tensors (dict): name -> contiguous, dense tensor; none share memory.
        filename: a path; an old file stays until the new one is complete.
        metadata (dict): strings.

    Raises:
        ValueError, RuntimeError: tensors that the format cannot hold.

    Example:
        >>> save_file({"weight": taeda.zeros(2, 3)}, "model.safetensors")
    """
    from taeda._io.atomic import AtomicFile

    pieces = _pieces(tensors, metadata)
    first = next(pieces)  # checked before any file is touched
    with AtomicFile(filename) as file:
        file.write(first)
        for piece in pieces:
            file.write(piece)


class _Entry:
    __slots__ = ("begin", "dtype", "end", "name", "shape")

    def __init__(self, name: str, facts, limit: int) -> None:
        self.name = name
        keys = {"dtype", "shape", "data_offsets"}
        if not isinstance(facts, dict) or set(facts) != keys:
            raise SafetensorError(f"the entry of tensor {short(name)} is malformed")
        kind, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
        if type(kind) is not str or kind not in DTYPES:
            raise SafetensorError(
                f"tensor {short(name)} has unknown dtype {short(kind)}"
            )
        self.dtype = getattr(taeda, DTYPES[kind])
        _check_ints(name, shape)
        _check_ints(name, offsets)
        count = self.dtype.itemsize
        for n in shape:
            count *= n
        if len(offsets) != 2 or offsets[1] - offsets[0] != count or offsets[1] > limit:
            raise SafetensorError(
                f"tensor {short(name)} of {count} bytes lies at {short(offsets)} of "
                f"{limit} bytes"
            )
        self.shape, (self.begin, self.end) = shape, offsets


def _check_ints(name: str, values) -> None:
    # The product of many large sizes takes long.
    valid = isinstance(values, list) and len(values) <= _MAX_DIMENSIONS
    if not valid or not all(type(v) is int and 0 <= v < 1 << 62 for v in values):
        raise SafetensorError(f"the entry of tensor {short(name)} is malformed")


def _no_doubles(pairs: list) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SafetensorError("the header names something twice")
    return found


def _pay_for_header(source: Source, text: str) -> None:
    needed = 2 * len(text) + sum(text.count(k) * v for k, v in _PRICES.items())
    if needed > Allowance(source.size).left:
        raise SafetensorError(
            f"a header of {len(text)} bytes with up to {needed} bytes of JSON objects "
            f"in a file of {source.size} bytes"
        )


def _read_header(source: Source) -> tuple[dict, dict, int]:
    """(entries, metadata, where the data begins)."""
    import json

    if source.size < 8:
        raise SafetensorError("the file is too short for a header")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > _MAX_HEADER or 8 + length > source.size:
        raise SafetensorError(f"a header of {length} bytes in {source.size} bytes")
    try:
        text = source.read(8, length).decode()
        _pay_for_header(source, text)
        header = json.loads(text, object_pairs_hook=_no_doubles)
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"the header is no JSON: {str(error)[:200]}") from None
    if not isinstance(header, dict) or not text.startswith("{"):
        raise SafetensorError("the header is no JSON object")
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not isinstance(metadata, dict):
        raise SafetensorError("the metadata are no JSON object")
    limit = source.size - 8 - length
    entries = {name: _Entry(name, facts, limit) for name, facts in header.items()}
    at = 0
    for entry in sorted(entries.values(), key=lambda e: (e.begin, e.end)):
        if entry.begin != at:
            raise SafetensorError(
                f"a gap or an overlap before tensor {short(entry.name)}"
            )
        at = entry.end
    if at != limit:
        raise SafetensorError(f"the tensors end at {at} of {limit} bytes")
    return entries, metadata, 8 + length


class safe_open:
    """A file whose tensors are read one at a time.

    Args:
        filename: a path. framework (str): "pt", or "taeda". device: where to.

    Raises:
        SafetensorError: the file does not follow the format.

    Example:
        >>> save_file({"weight": taeda.zeros(2, 3)}, "model.safetensors")
        >>> with safe_open("model.safetensors") as file:
        ...     weight = file.get_tensor("weight")
    """

    def __init__(self, filename, framework: str = "pt", device="cpu") -> None:
        if framework not in ("pt", "torch", "taeda"):
            raise ValueError(f"framework {framework!r} is not this library")
        self.device = device
        self.source = Source(filename)
        try:
            self.entries, self._metadata, self.start = _read_header(self.source)
        except BaseException:
            self.source.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exception) -> None:
        self.source.close()

    def metadata(self) -> dict | None:
        """The strings of the header."""
        return self._metadata

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self.entries)

    def offset_keys(self) -> list[str]:
        """The names in the order of the data."""
        return sorted(self.entries, key=lambda n: self.entries[n].begin)

    def get_tensor(self, name: str):
        """One tensor."""
        entry = self.entries.get(name)
        if entry is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        tensor = taeda.empty(entry.shape, dtype=entry.dtype)
        if entry.end > entry.begin:
            view = storage_bytes(tensor.untyped_storage())
            self.source.read_into(self.start + entry.begin, view)
            if sys.byteorder == "big":
                swap_bytes(view, byte_width(entry.dtype))
        return tensor if str(self.device) == "cpu" else tensor.to(self.device)

    def get_slice(self, name: str) -> _Slice:
        """A tensor of which parts are read by indexing."""
        if name not in self.entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return _Slice(self, self.entries[name])


class _Slice:
    """Reads the rows that an index names."""

    def __init__(self, file: safe_open, entry: _Entry) -> None:
        self.file, self.entry = file, entry

    def get_shape(self) -> list[int]:
        """The whole shape."""
        return list(self.entry.shape)

    def get_dtype(self) -> str:
        """The dtype's name in the file."""
        return _NAMES[str(self.entry.dtype).rpartition(".")[2]]

    def __getitem__(self, index):
        entry = self.entry
        rows = index[0] if isinstance(index, tuple) else index
        if not isinstance(rows, slice) or not entry.shape:
            return self.file.get_tensor(entry.name)[index]
        start, stop, step = rows.indices(entry.shape[0])
        if step != 1 or stop <= start:
            return self.file.get_tensor(entry.name)[index]
        part = taeda.empty((stop - start, *entry.shape[1:]), dtype=entry.dtype)
        width = (entry.end - entry.begin) // entry.shape[0]
        view = storage_bytes(part.untyped_storage())
        at = self.file.start + entry.begin + start * width
        self.file.source.read_into(at, view[: (stop - start) * width])
        if sys.byteorder == "big":
            swap_bytes(view, byte_width(entry.dtype))
        part = part if str(self.file.device) == "cpu" else part.to(self.file.device)
        return part[(slice(None), *index[1:])] if isinstance(index, tuple) else part


def load_file(filename, device="cpu") -> dict:
    """The tensors of a file.

    Args:
        filename: a path, or an object with read and seek. device: where to.

    Raises:
        SafetensorError: the file does not follow the format.

    Example:
        >>> save_file({"weight": taeda.ones(2)}, "weight.safetensors")
        >>> load_file("weight.safetensors")
        {'weight': tensor([1., 1.])}
    """
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load(data: bytes) -> dict:
    """The tensors in the bytes of a file; errors as for `load_file`."""
    import io

    return load_file(io.BytesIO(data))
