"""The backend without processes, and backends in Python."""

from __future__ import annotations

import pytest
import taeda
import taeda.distributed as dist
from taeda.distributed._backend import GroupBackend
from taeda.distributed._fake import FakeStore
from taeda.distributed._work import DoneWork


@pytest.fixture(autouse=True)
def leave():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_one_rank_of_thousands():
    dist.init_process_group("fake", rank=3, world_size=4096, store=FakeStore())
    assert (dist.get_rank(), dist.get_world_size()) == (3, 4096)
    out = taeda.zeros(4096, 2)
    dist.all_gather_into_tensor(out, taeda.ones(2))
    assert float(out.sum()) == 8192
    group = dist.new_group([1, 3])
    assert dist.get_rank(group) == 1
    assert dist.get_backend() == "fake"


def test_backend_in_python():
    class Doubling(GroupBackend):
        def getBackendName(self):
            return "doubling"

        def allreduce(self, tensors, opts):
            tensors[0].mul_(2)
            return DoneWork(tensors)

    def make(store, rank, size, timeout):
        return Doubling(rank, size)

    dist.Backend.register_backend("doubling", make, devices=["cpu"])
    with pytest.raises(RuntimeError, match="already exists"):
        dist.Backend.register_backend("doubling", make)
    dist.init_process_group("doubling", rank=0, world_size=1, store=dist.HashStore())
    x = taeda.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2.0, 2.0]
    with pytest.raises(NotImplementedError, match="barrier: the backend doubling"):
        dist.barrier()


def test_absent_backends_are_named():
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in"):
        dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
    assert not dist.is_initialized()
