"""How batches travel between processes.

A message is one packet on a Unix socket. Small data lies in the packet. A tensor of
64 KiB or more has an anonymous memory file (memfd) of its own, whose descriptor goes
along; the receiver maps it as the tensor's storage and closes the descriptor. So
nothing has a name in /dev/shm, its size limit does not apply, no descriptor stays
open, and the memory is gone with its last tensor, even if a process is killed.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import pickle
import socket
import struct
import weakref

import taeda
from taeda._io.storages import lazy_flags, storage_bytes

_INLINE = 1 << 15  # a packet holds up to this much
_DIRECT = 1 << 16  # tensors from this size on have a file of their own
_MAX_FILES = 200  # of the 253 descriptors that a packet may carry
_HEAD = struct.Struct("<?II")  # spilled, length of the pickle, number of buffers
_SIZE = struct.Struct("<Q")

_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long),
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

_blocks: dict[int, tuple[int, int]] | None = None  # address -> (descriptor, bytes)


def _new_file(size: int) -> int:
    """An anonymous file in memory."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("taeda-batch", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def _map_file(fd: int, dtype, count: int):
    """A tensor over a file; the descriptor may be closed afterwards.

    Not by the module mmap, whose objects keep a descriptor each.
    """
    size = count * dtype.itemsize
    address = _libc.mmap(None, size, _PROTECTION, mmap.MAP_SHARED, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(
            number, f"cannot map a batch of {size} bytes", os.strerror(number)
        )
    block = (ctypes.c_char * size).from_address(address)
    weakref.finalize(block, _libc.munmap, address, size).atexit = False
    return taeda.frombuffer(block, dtype=dtype, count=count)


def start_sharing() -> None:
    """Let `shared_like` give out memory; in workers only."""
    global _blocks
    _blocks = {}


def shared_like(sample, count: int):
    """A tensor for `count` tensors like `sample`, in memory to be passed on.

    None where an ordinary one will do: in the main process, or for small data.
    """
    if _blocks is None or sample.device.type != "cpu" or sample.requires_grad:
        return None
    elements = count * sample.numel()
    size = elements * sample.dtype.itemsize
    if size < _DIRECT or type(sample) is not taeda.Tensor:
        return None
    fd = _new_file(size)
    tensor = _map_file(fd, sample.dtype, elements).view(count, *sample.shape)
    _blocks[tensor.data_ptr()] = fd, size
    return tensor


def _close_blocks() -> None:
    for fd, _ in (_blocks or {}).values():
        os.close(fd)
    if _blocks:
        _blocks.clear()


def _view(tensor) -> memoryview:
    """The bytes of a contiguous tensor."""
    width = tensor.dtype.itemsize
    start = tensor.storage_offset() * width
    data = storage_bytes(tensor.untyped_storage())
    return data[start : start + tensor.numel() * width]


class _Writer(pickle.Pickler):
    """Pickles an object; the bytes of tensors and arrays stay outside."""

    def __init__(self, stream) -> None:
        super().__init__(stream, 5, buffer_callback=self._buffer)
        self.buffers: list = []
        self.files: list[int] = []
        self.alive: list = []  # tensors whose bytes the buffers show

    def _buffer(self, buffer) -> None:
        self.buffers.append(buffer.raw())

    def reducer_override(self, obj):
        if isinstance(obj, taeda.Tensor):
            return self._tensor(obj)
        if isinstance(obj, taeda.Size):
            return _size, (tuple(obj),)
        if isinstance(obj, taeda.dtype):
            return _dtype, (str(obj).rpartition(".")[2],)
        if isinstance(obj, taeda.device):
            return _device, (str(obj),)
        return NotImplemented

    def _tensor(self, tensor):
        kind = type(tensor)
        if tensor.layout == taeda.sparse_coo:
            parts = tensor._indices(), tensor._values(), tuple(tensor.size())
            return _sparse, (*parts, tensor.is_coalesced())
        if tensor.layout != taeda.strided or tensor.device.type != "cpu":
            raise NotImplementedError(
                f"a worker cannot pass on a tensor of layout {tensor.layout} on "
                f"{tensor.device}; return CPU tensors and convert them in the main "
                "process"
            )
        grad = tensor.requires_grad and tensor.is_leaf
        plain = tensor.detach()
        if lazy_flags(plain):
            plain = plain.resolve_conj().resolve_neg()
        order = None
        if not plain.is_contiguous():
            plain, order = _dense_order(plain)
        shape, name = tuple(plain.shape), str(plain.dtype).rpartition(".")[2]
        cls = None if kind is taeda.Tensor else kind
        size = plain.numel() * plain.dtype.itemsize
        if size >= _DIRECT and len(self.files) < _MAX_FILES:
            place = len(self.files)
            self.files.append(self._file_of(plain, size))
            return _File, (place, name, shape, order, grad, cls)
        self.alive.append(plain)
        data = pickle.PickleBuffer(_view(plain) if size else b"")
        return _tensor, (data, name, shape, order, grad, cls)

    def _file_of(self, plain, size: int) -> int:
        known = (_blocks or {}).get(plain.data_ptr())
        if known is not None and known[1] == size:
            return os.dup(known[0])
        fd = _new_file(size)
        _write_all(fd, _view(plain))
        return fd


def _write_all(fd: int, data: memoryview) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done : done + (1 << 30)], done)


def _dense_order(tensor):
    """(contiguous tensor, order of its dimensions) for a permuted dense tensor."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    turned = tensor.permute(order)
    if turned.is_contiguous():
        return turned, tuple(order)
    return tensor.contiguous(), None


def _finish(flat, shape, order, grad, cls):
    tensor = flat.view(shape)
    if order is not None:
        back = [order.index(i) for i in range(len(order))]
        tensor = tensor.permute(back)
    if cls is not None and issubclass(cls, taeda.nn.Parameter):
        return cls(tensor, requires_grad=grad)
    if cls is not None:
        tensor = tensor.as_subclass(cls)
    return tensor.requires_grad_() if grad else tensor


def _tensor(data, name, shape, order, grad, cls):
    dtype = getattr(taeda, name)
    if not len(data):
        flat = taeda.empty(shape, dtype=dtype)
    else:
        flat = taeda.frombuffer(data, dtype=dtype)
    return _finish(flat, shape, order, grad, cls)


_received: list[int] = []  # descriptors of the message that is being read


def _File(place, name, shape, order, grad, cls):
    count = 1
    for n in shape:
        count *= n
    flat = _map_file(_received[place], getattr(taeda, name), count)
    return _finish(flat, shape, order, grad, cls)


def _sparse(indices, values, size, coalesced):
    tensor = taeda.sparse_coo_tensor(indices, values, size)
    return tensor._coalesced_(True) if coalesced else tensor


def _size(entries):
    return taeda.Size(entries)


def _dtype(name: str):
    return getattr(taeda, name)


def _device(name: str):
    return taeda.device(name)


class Channel:
    """One end of a connection that carries objects.

    Args:
        sock: an end of `pair()`.
    """

    def __init__(self, sock) -> None:
        self.sock = sock
        self.waiting: list = []  # packets that did not fit yet

    def fileno(self) -> int:
        """For poll and select."""
        return self.sock.fileno()

    def close(self) -> None:
        """Close this end; the other sees the end of the stream."""
        for _, fds in self.waiting:
            _close(fds)
        self.waiting.clear()
        self.sock.close()

    def send(self, obj, wait: bool = True) -> None:
        """Send an object; without `wait`, keep what does not fit for `flush`."""
        packet, fds = _pack(obj)
        _close_blocks()
        self.waiting.append((packet, fds))
        self.flush(wait)

    def flush(self, wait: bool = False) -> None:
        """Send what is kept."""
        flags = 0 if wait else socket.MSG_DONTWAIT
        while self.waiting:
            packet, fds = self.waiting[0]
            try:
                socket.send_fds(self.sock, [packet], fds, flags)
            except BlockingIOError:
                return
            self.waiting.pop(0)
            _close(fds)

    def receive(self):
        """The next object; EOFError when the other end is closed."""
        packet, fds, flags, _ = socket.recv_fds(
            self.sock, 4 * _INLINE, _MAX_FILES + 8, socket.MSG_CMSG_CLOEXEC
        )
        if not packet:
            raise EOFError
        try:
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RuntimeError(
                    "a batch could not be received: too many open files, or a message "
                    "that is too long"
                )
            return _unpack(packet, fds)
        finally:
            _close(fds)


def _close(fds) -> None:
    for fd in fds:
        os.close(fd)


def _pack(obj) -> tuple[bytes, list[int]]:
    stream = io.BytesIO()
    writer = _Writer(stream)
    try:
        writer.dump(obj)
    except BaseException:
        _close(writer.files)
        raise
    body = stream.getvalue()
    sizes = [_SIZE.pack(len(b)) for b in writer.buffers]
    parts = [b"".join(sizes), body]
    at = 0
    for buffer in writer.buffers:
        # Frombuffer needs elements at multiples of their size.
        parts += [bytes(-at % 16), buffer]
        at += -at % 16 + len(buffer)
    total = _HEAD.size + sum(map(len, parts))
    spilled = total > _INLINE
    head = _HEAD.pack(spilled, len(body), len(sizes))
    fds = writer.files
    if not spilled:
        return head + b"".join(parts), fds
    fd = _new_file(0)
    at = 0
    for part in parts:
        _write_at(fd, memoryview(part), at)
        at += len(part)
    return head, [*fds, fd]


def _write_at(fd: int, data: memoryview, at: int) -> None:
    while len(data):
        count = os.pwrite(fd, data[: 1 << 30], at)
        data, at = data[count:], at + count


def _unpack(packet: bytes, fds: list[int]):
    spilled, length, count = _HEAD.unpack_from(packet)
    if spilled:
        # Fresh memory, so that the tensors in it can be written to.
        fd = fds[-1]
        data = bytearray(os.fstat(fd).st_size)
        view, done = memoryview(data), 0
        while done < len(data):
            got = os.preadv(fd, [view[done:]], done)
            if not got:
                raise EOFError
            done += got
        start = 0
    else:
        data, start = bytearray(packet), _HEAD.size
    view = memoryview(data)
    sizes = [_SIZE.unpack_from(data, start + _SIZE.size * i)[0] for i in range(count)]
    start += _SIZE.size * count
    body = view[start : start + length]
    at, start, buffers = 0, start + length, []
    for size in sizes:
        at += -at % 16
        buffers.append(view[start + at : start + at + size])
        at += size
    _received[:] = fds
    try:
        return pickle.loads(body, buffers=buffers)
    finally:
        _received.clear()


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep packets whole."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
