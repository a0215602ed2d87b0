"""Objects as packets: what is sent of a batch, and how it is put together again.

Pickle (protocol 5) writes the object; the bytes of tensors and arrays stay outside of
the pickle. Those of 64 KiB or more travel as memory files, which the receiver maps, so
that they are not copied; each ends with its own last tensor. The rest lies in the
packet, or in one more file if that would be too long.

Everything here is made for one message and known to its call alone: loaders may be
used from any number of threads.
"""

from __future__ import annotations

import io
import os
import pickle
import struct

import taeda
from taeda._io.storages import lazy_flags
from taeda.utils.data._utils.memory import FILE_BYTES, map_file, new_file

PACKET_BYTES = 1 << 15  # a packet holds up to this much
MAX_FILES = 200  # of the 253 descriptors that a packet may carry
_HEAD = struct.Struct("<?II")  # spilled, length of the plan, length of the pickle
_VECTOR = os.sysconf("SC_IOV_MAX") if hasattr(os, "preadv") else 1

# Layout -> the names of its offsets and indices.
_ROWS, _COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
_OFFSETS = {
    taeda.sparse_csr: _ROWS,
    taeda.sparse_bsr: _ROWS,
    taeda.sparse_csc: _COLUMNS,
    taeda.sparse_bsc: _COLUMNS,
}


class _Writer(pickle.Pickler):
    """Pickles an object; lists its tensors and buffers instead of writing them."""

    def __init__(self, stream) -> None:
        self.tensors: list = []
        self.arrays: list = []
        # A method of this object would be a cycle that keeps batches alive.
        super().__init__(stream, 5, buffer_callback=self.arrays.append)

    def reducer_override(self, obj):
        if not isinstance(obj, taeda.Tensor):
            return NotImplemented
        if obj.requires_grad and not obj.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad: "
                f"a worker made one of shape {tuple(obj.shape)}, and autograd does not "
                "reach the main process; detach() it in the dataset or collate_fn"
            )
        if obj.layout == taeda.sparse_coo:
            parts = obj._indices(), obj._values(), tuple(obj.size())
            return _sparse, (*parts, obj.is_coalesced())
        if obj.layout in _OFFSETS:
            offsets, indices = _OFFSETS[obj.layout]
            parts = getattr(obj, offsets)(), getattr(obj, indices)(), obj.values()
            return _compressed, (*parts, tuple(obj.size()), obj.layout)
        if obj.layout != taeda.strided or obj.device.type != "cpu":
            raise NotImplementedError(
                f"a worker cannot pass on a tensor of layout {obj.layout} on "
                f"{obj.device}; return CPU tensors and convert them in the main process"
            )
        plain = obj.detach()
        if type(obj) is not taeda.Tensor or obj.requires_grad:
            plain = plain.as_subclass(taeda.Tensor)
            return _finish, (plain, type(obj), obj.requires_grad, obj.__dict__)
        if lazy_flags(plain):
            plain = plain.resolve_conj().resolve_neg()
        self.tensors.append(plain)
        return _tensor, (len(self.tensors) - 1,)


class _Reader(pickle.Unpickler):
    """The way back, given the tensors and the buffers."""

    def __init__(self, stream, tensors: list, arrays: list) -> None:
        super().__init__(stream, buffers=arrays)
        self._tensors = tensors

    def find_class(self, module: str, name: str):
        if name == "_tensor" and module == __name__:
            return self._tensors.__getitem__
        return super().find_class(module, name)


def _tensor(number: int):
    """In a pickle: entry `number` of the reader's tensors."""
    raise NotImplementedError("only the loader can read what its workers wrote")


def _sparse(indices, values, size, coalesced: bool):
    tensor = taeda.sparse_coo_tensor(indices, values, size)
    return tensor._coalesced_(True) if coalesced else tensor


def _compressed(offsets, indices, values, size, layout):
    return taeda.sparse_compressed_tensor(offsets, indices, values, size, layout=layout)


def _finish(tensor, kind, grad: bool, state: dict):
    if issubclass(kind, taeda.nn.Parameter):
        tensor = kind(tensor, requires_grad=grad)
    else:
        tensor = tensor.as_subclass(kind).requires_grad_(grad)
    tensor.__dict__.update(state)
    return tensor


class _Layout:
    """Which bytes travel, and where in them the tensors lie.

    Tensors whose memory overlaps share a block, so that they share memory afterwards.
    Bytes between the elements of a strided tensor travel while they at most double
    the block; otherwise its elements are copied together first.

    Args:
        tensors: dense CPU tensors.
    """

    def __init__(self, tensors: list) -> None:
        self.blocks: list = []  # (address, bytes)
        self.views: list = [None] * len(tensors)  # arguments of `_view`
        spans = []
        for number, tensor in enumerate(tensors):
            if tensor.numel() == 0:
                self._see(number, tensor, None, 0)
                continue
            start = tensor.data_ptr()
            pairs = zip(tensor.shape, tensor.stride(), strict=True)
            last = sum((size - 1) * step for size, step in pairs)
            width = tensor.dtype.itemsize
            base = tensor.untyped_storage().data_ptr()
            end = start + width * (last + 1)
            spans.append((base, start, end, width * tensor.numel(), number))
        spans.sort()
        first = 0
        while first < len(spans):
            base, start, end, size, _ = spans[first]
            after, longest = first + 1, first
            while after < len(spans) and spans[after][:2] < (base, end):
                size += spans[after][3]
                if spans[after][2] > end:
                    end, longest = spans[after][2], after
                after += 1
            members = [(spans[i][1] - start, spans[i][4]) for i in range(first, after)]
            owner = tensors[spans[longest][4]]
            self._add(tensors, members, owner, (base, start, end), size)
            first = after

    def _add(self, tensors, members, owner, span, size: int) -> None:
        base, start, end = span
        odd = any(at % tensors[number].dtype.itemsize for at, number in members)
        if end - start > 2 * size or odd:
            for _, number in members:
                compact = tensors[number].clone(memory_format=taeda.contiguous_format)
                self._see(number, compact, len(self.blocks), 0)
                self.blocks.append((compact.data_ptr(), _bytes_of(compact)))
            return
        for at, number in members:
            self._see(number, tensors[number], len(self.blocks), at)
        data = memoryview(owner.untyped_storage()).cast("B")
        self.blocks.append((start, data[start - base : end - base]))

    def _see(self, number: int, tensor, block: int | None, at: int) -> None:
        sizes, name = tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2]
        at //= tensor.dtype.itemsize
        self.views[number] = name, sizes, tensor.stride(), block, at


def _bytes_of(tensor) -> memoryview:
    return memoryview(tensor.untyped_storage()).cast("B")


def _storage(block):
    if isinstance(block, taeda.UntypedStorage):
        return block
    return taeda.frombuffer(block, dtype=taeda.uint8).untyped_storage()


def _view(storages: list, name: str, sizes, strides, block: int | None, at: int):
    empty = taeda.empty(0, dtype=getattr(taeda, name))
    if block is None:
        return empty.resize_(sizes)
    return empty.set_(storages[block], at, sizes, strides)


def _each(call, fd: int, views: list, at: int) -> int:
    """preadv or pwritev until all bytes are through; returns where that ends."""
    views = [memoryview(view) for view in views if len(view)]
    first = 0
    while first < len(views):
        done = call(fd, views[first : first + _VECTOR], at)
        if not done:
            raise EOFError
        at += done
        while first < len(views) and done >= len(views[first]):
            done -= len(views[first])
            first += 1
        if done:
            views[first] = views[first][done:]
    return at


def _file_with(views: list) -> int:
    fd = new_file(0)
    try:
        _each(os.pwritev, fd, views, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def pack(obj, arena=None) -> tuple[bytes, list[int]]:
    """An object as a packet and the files that go with it, for the caller to close.

    Args:
        obj: what can be pickled, with CPU tensors.
        arena (Arena): where tensors in it may have been made.

    Raises:
        RuntimeError: a tensor with a history.
        NotImplementedError: a tensor of another device or layout.
        PicklingError and others: what pickle cannot write.
    """
    stream = io.BytesIO()
    writer = _Writer(stream)
    writer.dump(obj)
    layout = _Layout(writer.tensors)
    blocks = layout.blocks + [(0, array.raw()) for array in writer.arrays]
    files: list[int] = []
    try:
        sizes, near = [], []
        for address, data in blocks:
            size = len(data)
            if size < FILE_BYTES or len(files) == MAX_FILES:
                near.append(data)
                sizes.append(size)
                continue
            fd = arena.take(address, size) if arena is not None and address else None
            files.append(_file_with([data]) if fd is None else fd)
            sizes.append(-size)
        plan = pickle.dumps((layout.views, sizes, len(layout.blocks)), 5)
        parts = [plan, stream.getbuffer(), *near]
        lengths = len(plan), len(parts[1])
        if sum(map(len, parts)) <= PACKET_BYTES:
            return b"".join([_HEAD.pack(False, *lengths), *parts]), files
        files.append(_file_with(parts))
        return _HEAD.pack(True, *lengths), files
    except BaseException:
        close_all(files)
        raise


class _Source:
    """Reads what a packet carries beside its files, part after part."""

    def __init__(self, packet: bytes, fd: int | None) -> None:
        self._fd, self._at = fd, 0 if fd is not None else _HEAD.size
        self._packet = memoryview(packet)

    def take(self, sizes) -> list[bytearray]:
        """The next parts, each in memory of its own."""
        if self._fd is not None:
            parts = [bytearray(size) for size in sizes]
            self._at = _each(os.preadv, self._fd, parts, self._at)
            return parts
        parts = []
        for size in sizes:
            parts.append(bytearray(self._packet[self._at : self._at + size]))
            self._at += size
        return parts


def unpack(packet: bytes, files: list[int]):
    """The object that `pack` was given; the files may be closed afterwards."""
    spilled, *lengths = _HEAD.unpack_from(packet)
    source = _Source(packet, files[-1] if spilled else None)
    plan, body = source.take(lengths)
    views, sizes, count = pickle.loads(plan)
    near = iter(source.take([size for size in sizes if size >= 0]))
    far = iter(files)
    blocks = [next(near) if n >= 0 else map_file(next(far), -n) for n in sizes]
    storages = [_storage(block) for block in blocks[:count]]
    tensors = [_view(storages, *view) for view in views]
    return _Reader(io.BytesIO(body), tensors, blocks[count:]).load()


def close_all(files) -> None:
    """Close descriptors."""
    for fd in files:
        os.close(fd)
