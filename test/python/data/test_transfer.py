"""What arrives of a worker's batch, and what it costs in memory and descriptors."""

from __future__ import annotations

import errno
import os
import pathlib
import socket
import sys

import numpy
import pytest
import taeda
from taeda.utils import data
from taeda.utils.data._utils import channel, memory, transfer


def sent(obj, arena=None):
    """The object after its way through a connection."""
    ours, theirs = map(channel.Channel, channel.pair())
    try:
        ours.send(obj, arena)
        return theirs.receive()
    finally:
        ours.close()
        theirs.close()


def memory_files() -> int:
    """How many of this process's mappings are those of batches."""
    return pathlib.Path("/proc/self/maps").read_text().count("taeda-batch")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


SIZES = [5, 5000, 50_000]  # in the packet, in its file, in a file of its own


@pytest.mark.parametrize("size", SIZES)
def test_views_of_one_memory_share_it_afterwards(size) -> None:
    whole = taeda.arange(2.0 * size)
    have = sent({"head": whole[:size], "all": whole, "odd": whole[1::2], "same": whole})
    assert have["same"] is have["all"]
    have["all"].zero_()
    assert have["head"].sum() == 0 and have["odd"].sum() == 0
    assert have["odd"].stride() == (2,)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_kept_of_a_batch_keeps_nothing_else(size) -> None:
    table = taeda.arange(6.0 * size).view(6, size)
    first, label, last = sent([table[1], taeda.tensor([1, 2]), table[4]])
    assert first.equal(table[1]) and last.equal(table[4])
    assert label.untyped_storage().nbytes() == 16
    assert first.untyped_storage().nbytes() == 4 * size
    first.zero_()
    assert last.equal(table[4])


def test_columns_do_not_bring_the_whole_table() -> None:
    table = taeda.arange(300_000.0).view(1000, 300)
    one, other = sent([table[:, 7], table[:, 8]])
    assert one.equal(table[:, 7]) and other.equal(table[:, 8])
    assert one.untyped_storage().nbytes() == 4000


def test_bytes_of_two_dtypes_share_memory() -> None:
    floats = taeda.arange(4.0)
    have, raw = sent([floats, floats.view(taeda.uint8)])
    raw.zero_()
    assert have.tolist() == [0, 0, 0, 0]
    odd = taeda.arange(40, dtype=taeda.uint8)
    inner = odd[8:24].view(taeda.float64)
    again, double = sent([odd[3:], inner])  # 5 bytes apart: no place for doubles
    assert again.equal(odd[3:]) and double.view(taeda.uint8).equal(odd[8:24])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 5), (40, 40, 40)])
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "bfloat16", "complex64"])
def test_shapes_and_dtypes(shape, dtype) -> None:
    tensor = taeda.ones(shape).to(getattr(taeda, dtype))
    have = sent(tensor)
    assert have.dtype == tensor.dtype and have.shape == tensor.shape
    assert have.equal(tensor) and have.stride() == tensor.stride()
    assert have.is_leaf and not have.requires_grad and not have._is_view()


def test_strides_that_repeat_elements() -> None:
    row = taeda.arange(3.0).expand(10_000, 3)
    have = sent(row)
    assert have.equal(row) and have.stride() == (0, 1)
    assert have.untyped_storage().nbytes() == 12


def test_gradients_and_subclasses() -> None:
    class_ = taeda.nn.Parameter
    leaf = taeda.ones(3, requires_grad=True)
    have, frozen = sent([leaf, class_(taeda.ones(2), requires_grad=False)])
    assert have.requires_grad and have.is_leaf
    assert type(frozen) is class_ and not frozen.requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf"):
        sent(leaf * 2)
    with pytest.raises(NotImplementedError, match="on meta"):
        sent(taeda.ones(2, device="meta"))


def test_arrays_are_writable_and_own_their_memory() -> None:
    arrays = [numpy.arange(n, dtype="float32") for n in (0, 3, 5000, 50_000)]
    for have, want in zip(sent(arrays), arrays, strict=True):
        assert have.dtype == want.dtype and (have == want).all()
        have[:] = 1
    fixed = numpy.frombuffer(b"12345678", dtype="uint8")
    assert (sent(fixed) == fixed).all()


def test_more_files_than_a_packet_carries() -> None:
    before, mapped = descriptors(), memory_files()
    many = [taeda.full((20_000,), float(i)) for i in range(transfer.MAX_FILES + 20)]
    have = sent(many)
    assert descriptors() == before
    assert all(a.equal(b) for a, b in zip(have, many, strict=True))
    del have
    assert memory_files() == mapped


def test_long_texts() -> None:
    texts = [f"line {i}" for i in range(30_000)]
    assert sent(texts) == texts


def test_an_arena_is_passed_on_without_a_copy() -> None:
    mapped, before = memory_files(), descriptors()
    arena = memory.Arena()
    made = arena.like(taeda.zeros(300, 100), 2).fill_(3)
    spare = arena.like(taeda.zeros(300, 100), 2).fill_(4)
    have = sent([made], arena)[0]
    arena.close()
    made[1, 2, 3] = 7
    assert have[1, 2, 3] == 7  # the same memory
    assert spare.eq(4).all()
    del made, have, spare
    assert (memory_files(), descriptors()) == (mapped, before)


def test_a_user_with_too_many_descriptors_on_their_way(monkeypatch) -> None:
    real, calls = socket.send_fds, []

    def crowded(*args):
        calls.append(args)
        if len(calls) < 4:
            raise OSError(errno.ETOOMANYREFS, "Too many references")
        return real(*args)

    ours, theirs = map(channel.Channel, channel.pair())
    monkeypatch.setattr(socket, "send_fds", crowded)
    ours.send(taeda.ones(50_000))
    while ours.waits:
        assert ours.ready(1)
        ours.flush()
    assert len(calls) == 4 and theirs.receive().sum() == 50_000
    ours.close()
    theirs.close()


def test_closing_frees_what_is_on_its_way() -> None:
    before = descriptors()
    ours, theirs = map(channel.Channel, channel.pair())
    copy = ours._sock.dup(), theirs._sock.dup()  # as a fork by another thread has
    for _ in range(3):
        theirs.send(taeda.ones(50_000))
    ours.close()
    with pytest.raises(ConnectionError):
        theirs.send(1)
    assert theirs.ready(1)
    with pytest.raises(EOFError):
        theirs.receive()
    assert not copy[0].recv(1, socket.MSG_DONTWAIT)
    theirs.close()
    for sock in copy:
        sock.close()
    assert descriptors() == before


class Mapped(data.Dataset):
    """How many mappings of earlier batches the worker still has."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int):
        return taeda.zeros(50_000), memory_files()


def test_a_worker_forgets_a_batch_once_it_is_sent() -> None:
    def uncollected(number: int) -> None:
        import gc

        gc.disable()

    loader = data.DataLoader(
        Mapped(), batch_size=2, num_workers=1, worker_init_fn=uncollected
    )
    counts = [count.max().item() for _, count in loader]
    # What the worker inherited from this process by its fork stays the same.
    assert set(counts) == {counts[0]}


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_sparse_tensors_keep_their_layout(layout: str) -> None:
    block = ((1, 2),) if layout.startswith("b") else ()
    dense = taeda.tensor([[0.0, 0, 1, 2], [3, 0, 0, 0]])
    name = "to_sparse" if layout == "coo" else f"to_sparse_{layout}"
    have = sent(getattr(dense, name)(*block))
    assert str(have.layout) == f"taeda.sparse_{layout}"
    assert taeda.equal(have.to_dense(), dense)


def test_a_batch_goes_without_a_step_of_python() -> None:
    """Ctrl-C comes between two steps, and out of a finalizer no exception does."""
    arrived, before = sent(taeda.ones(50_000)), memory_files()
    steps = []
    sys.setprofile(lambda frame, event, arg: steps.append(frame.f_code.co_name))
    del arrived
    sys.setprofile(None)
    assert set(steps) <= {test_a_batch_goes_without_a_step_of_python.__name__}
    assert memory_files() == before - 1
