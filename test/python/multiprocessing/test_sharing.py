"""Tensors through queues, pipes, pools and arguments of processes."""

from __future__ import annotations

import os

import pytest
import sharing_programs
import taeda
import taeda.multiprocessing as mp

STRATEGIES = ["file_descriptor", "file_system"]


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def names() -> set[str]:
    return {n for n in os.listdir("/dev/shm") if n.startswith(f"taeda_{os.getpid()}_")}


def started(context, function, *args):
    process = context.Process(target=function, args=args, daemon=True)
    process.start()
    return process


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_queue_both_ways(strategy, method):
    context = mp.get_context(method)
    source, results = context.Queue(), context.Queue()
    other = started(context, sharing_programs.add_and_return, source, results)
    given = taeda.arange(6.0).view(2, 3)[:, 1:]
    source.put(given)
    back = results.get(timeout=60)
    assert back.tolist() == [[2.0, 3.0], [5.0, 6.0]]
    assert given.tolist() == back.tolist()  # the other's write is seen here
    # What came back is the storage that was sent, not another mapping of it.
    assert back.untyped_storage()._cdata == given.untyped_storage()._cdata
    assert back.stride() == given.stride()
    assert back.storage_offset() == 1
    source.put(None)
    other.join(60)
    assert other.exitcode == 0
    del given, back
    assert not names()


def test_two_messages_one_storage(strategy):
    context = mp.get_context("fork")
    source, results = context.Queue(), context.Queue()
    other = started(context, sharing_programs.look, source, results)
    whole = taeda.zeros(4)
    source.put(whole)
    source.put(whole[2:])
    assert results.get(timeout=60) == ([7.0, 7.0], True, True)
    source.put(None)
    other.join(60)
    assert whole.tolist() == [7.0] * 4


def test_views_in_one_message(strategy):
    queue = mp.get_context("fork").SimpleQueue()
    whole = taeda.zeros(4)
    queue.put([whole, whole[1:], whole])
    first, second, third = queue.get()
    assert first is third
    second.fill_(2)
    assert whole.tolist() == first.tolist() == [0.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_module_as_argument(strategy, method):
    module = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.BatchNorm1d(2))
    assert module.share_memory() is module
    assert all(p.is_shared() for p in (*module.parameters(), *module.buffers()))
    other = started(mp.get_context(method), sharing_programs.train, module)
    other.join(60)
    assert other.exitcode == 0
    for value in (*module.parameters(), *module.buffers()):
        assert (value == 3).all()


def test_forked_write_without_sending(strategy):
    tensor = taeda.zeros(3).share_memory_()
    started(mp.get_context("fork"), sharing_programs.fill, tensor, 4.0).join(60)
    assert tensor.tolist() == [4.0] * 3
    assert len(names()) == (strategy == "file_system")  # the child unlinked nothing
    del tensor
    assert not names()


def test_parameters_keep_what_they_are(strategy):
    queue = mp.get_context("fork").SimpleQueue()
    sent = taeda.nn.Parameter(taeda.ones(2), requires_grad=False)
    leaf = taeda.ones(2, dtype=taeda.bfloat16, requires_grad=True)
    queue.put((sent, leaf, taeda.empty(2, 3, device="meta"), taeda.empty(0, 4)))
    parameter, tensor, meta, empty = queue.get()
    assert type(parameter) is taeda.nn.Parameter and not parameter.requires_grad
    assert type(tensor) is taeda.Tensor and tensor.requires_grad and tensor.is_leaf
    assert tensor.dtype == taeda.bfloat16
    assert meta.device.type == "meta" and meta.shape == (2, 3)
    assert empty.shape == (0, 4)


def test_lazy_conjugates_are_written_out(strategy):
    queue = mp.get_context("fork").SimpleQueue()
    queue.put(taeda.tensor([1 + 2j]).conj())
    assert queue.get().tolist() == [1 - 2j]


def test_storages(strategy):
    queue = mp.get_context("fork").SimpleQueue()
    tensor = taeda.tensor([1.0, 2.0])
    queue.put((tensor.untyped_storage(), tensor.storage()))
    untyped, typed = queue.get()
    assert typed.tolist() == [1.0, 2.0]
    assert untyped._cdata == typed.untyped()._cdata == tensor.untyped_storage()._cdata


def test_pool():
    with mp.get_context("fork").Pool(1) as pool:
        results = pool.map(sharing_programs.double, [taeda.ones(2), taeda.ones(1)])
    assert [r.tolist() for r in results] == [[2.0, 2.0], [2.0]]


def test_history_does_not_travel():
    from taeda.multiprocessing.reductions import reduce_tensor

    with pytest.raises(RuntimeError, match="Cowardly refusing .* call detach"):
        reduce_tensor(taeda.ones(1, requires_grad=True) * 2)


def test_strategies():
    assert mp.get_all_sharing_strategies() == set(STRATEGIES)
    assert mp.get_sharing_strategy() == "file_descriptor"
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x'"):
        mp.set_sharing_strategy("x")


def test_file_mapped_tensors_travel(tmp_path):
    queue = mp.get_context("fork").SimpleQueue()
    path = os.fspath(tmp_path / "numbers")
    tensor = taeda.from_file(path, shared=True, size=3)
    queue.put(tensor)
    queue.get().fill_(5)
    assert tensor.tolist() == [5.0] * 3
    private = taeda.from_file(path, size=3)
    queue.put(private)
    queue.get().fill_(6)
    assert private.tolist() == [5.0] * 3
