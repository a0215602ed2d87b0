"""How storages on GPUs are sent to another process of this machine.

The bytes stay where they are: the other process opens the same memory. Its stream waits
for the sender's. The sender keeps the storage until the receiver has dropped all that
it made of it, and looks for that whenever it sends, or in `taeda.cuda.ipc_collect()`;
what nobody receives is kept until the sender ends.
"""

from __future__ import annotations

import os
import threading
from multiprocessing import reduction

import taeda
from taeda.cuda._devices import _driver
from taeda.cuda.streams import Event, current_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ipc_collect", "rebuild_cuda_storage", "reduce_cuda_storage"]

_SLOTS = 4096  # of bytes by which receivers say that they are done


class _Sent:
    """What the sender keeps of one message."""

    def __init__(
        self, storage: Any, event: Event, descriptors: list[int], flags: Any, slot: int
    ) -> None:
        self.storage, self.event, self.descriptors = storage, event, descriptors
        self.flags, self.slot = flags, slot

    def is_done(self) -> bool:
        return self.flags[self.slot] != 0

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


# All under the lock: what was sent, by number, and the shared bytes in use.
_lock = threading.Lock()
_sent: dict[int, _Sent] = {}
_last = 0
_flags: Any = None
_slot = _SLOTS


def _collect() -> None:
    for number in [n for n, sent in _sent.items() if sent.is_done()]:
        _sent.pop(number).close()


def ipc_collect() -> None:
    """Let go of what other processes have received and dropped.

    Raises:
        AssertionError: there is no GPU.
    """
    _driver()
    with _lock:
        _collect()


def _next_slot() -> tuple[Any, int]:
    global _flags, _slot
    if _slot == _SLOTS:
        _flags = taeda.zeros(_SLOTS, dtype=taeda.uint8).untyped_storage()
        _flags.share_memory_()
        _slot = 0
    _slot += 1
    return _flags, _slot - 1


def reduce_cuda_storage(storage: Any) -> tuple:
    """What to send of a storage on a GPU.

    Raises:
        RuntimeError: its memory is another process's or another library's.
    """
    global _last
    nbytes = storage.nbytes()
    if nbytes == 0:
        return rebuild_empty, (str(storage.device),)
    whole = taeda.empty(0, dtype=taeda.uint8, device=storage.device).set_(storage)
    device, page, offset, handle, descriptors = _driver().share(whole)
    with taeda.cuda.device(device):
        event = Event(interprocess=True)
        event.record(current_stream(device))
    with _lock:
        _collect()
        flags, slot = _next_slot()
        _last += 1
        number = _last
        _sent[number] = _Sent(storage, event, descriptors, flags, slot)
    files = [reduction.DupFd(descriptor) for descriptor in descriptors]
    place = (device, page, offset, handle, files, nbytes)
    message = (event.ipc_handle(), flags, slot)
    return rebuild_cuda_storage, ((os.getpid(), number), place, message)


def rebuild_empty(device: str) -> Any:
    """A storage of no bytes on a GPU."""
    return taeda.empty(0, dtype=taeda.uint8, device=device).untyped_storage()


def rebuild_cuda_storage(sender: tuple, place: tuple, message: tuple) -> Any:
    """The storage that another process sent; this process's own stays what it is.

    Args:
        sender: its number, and that of the message.
        place: device, bytes of a page, offset, handle, descriptors, bytes.
        message: the handle of an event, shared bytes, and which of them to set.
    """
    process, number = sender
    device, page, offset, handle, files, nbytes = place
    event_handle, flags, slot = message
    if process == os.getpid():
        with _lock:
            flags[slot] = 1
            return _sent[number].storage
    written = Event.from_ipc_handle(device, event_handle)
    written.wait(current_stream(device))

    def closed(keep: Event = written) -> None:
        flags[slot] = 1

    descriptors = [file.detach() for file in files]
    try:
        opened = _driver().open(
            device, page, offset, handle, descriptors, nbytes, closed
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return opened.untyped_storage()
