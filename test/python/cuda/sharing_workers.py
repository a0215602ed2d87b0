"""What the other processes of device_sharing.py do."""

from __future__ import annotations

import taeda
from taeda import cuda


def add_one(incoming, outgoing) -> None:
    x, weight = incoming.get()
    assert x.is_cuda and isinstance(weight, taeda.nn.Parameter)
    x.add_(1)
    outgoing.put((x.sum().item(), weight.sum().item(), x.shape, x.stride()))
    del x, weight


def check_large(incoming, device) -> None:
    x = incoming.get()
    assert x.device == taeda.device(device)
    assert x.cpu().unique().tolist() == [7]


def wait_for_event(handle, connection) -> None:
    event = cuda.Event.from_ipc_handle(0, handle)
    event.synchronize()
    assert event.query()
    stream = cuda.Stream()
    event.wait(stream)
    stream.synchronize()
    connection.send("passed")
