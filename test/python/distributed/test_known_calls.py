"""Calls on distributed tensors that were computed before: without the handler."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import taeda
import taeda.distributed as dist
from taeda.distributed._fake import FakeStore
from taeda.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from taeda.utils._python_dispatch import TorchDispatchMode

COUNT = 6  # rows of a rank's part


def _mesh(rank: int = 0, world: int = 2):
    if dist.is_initialized():
        dist.destroy_process_group()
    dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
    return dist.device_mesh.init_device_mesh("cpu", (world,))


@pytest.fixture
def mesh():
    taeda._C._forget_calls()
    yield _mesh()
    dist.destroy_process_group()


@pytest.fixture
def handled(monkeypatch):
    """How often each overload came to the handler."""
    seen: Counter = Counter()
    handler = DTensor.__torch_dispatch__

    def counting(func, types, args=(), kwargs=None):
        seen[func.name()] += 1
        return handler(func, types, args, kwargs)

    monkeypatch.setattr(DTensor, "__torch_dispatch__", staticmethod(counting))
    return seen


def _rows(mesh, width: int = 4):
    whole = taeda.arange(2.0 * COUNT * width).reshape(2 * COUNT, width)
    return distribute_tensor(whole, mesh, [Shard(0)])


def _listed(made) -> list:
    return list(made) if isinstance(made, (list, tuple)) else [made]


CALLS = {
    "binary": lambda a: a + a,
    "number": lambda a: a * 2,
    "unary": taeda.relu,
    "reduction": lambda a: a.sum(1),
    "view": lambda a: a.unsqueeze(1),
    "sizes": lambda a: a.reshape(2 * COUNT, 2, 2),
    "list": lambda a: a.split(3, 1),
    "tuple": lambda a: a.max(1),
    "of_list": lambda a: taeda.cat([a, a], 1),
    "keywords": lambda a: taeda.ones_like(a, dtype=taeda.int64),
    "moved": lambda a: taeda.full_like(a.redistribute(placements=[Replicate()]), 3) * a,
    "written": lambda a: a.clone().add_(1),
    "norm": lambda a: taeda.nn.functional.layer_norm(a, (4,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_second_call_is_computed_without_the_handler(mesh, handled, name):
    call = CALLS[name]
    a = _rows(mesh)
    handled.clear()
    first = call(a)
    assert handled
    handled.clear()
    second = call(a)
    assert not handled
    for got, want in zip(_listed(second), _listed(first), strict=True):
        assert type(got) is DTensor
        assert taeda.equal(got.to_local(), want.to_local())
        assert got._spec == want._spec
        assert (got.shape, got.stride()) == (want.shape, want.stride())
        assert (got.dtype, got.device) == (want.dtype, want.device)


def test_real_numbers_are_no_part_of_a_call_and_all_else_is(mesh, handled):
    a = _rows(mesh)
    assert taeda.equal((a * 2.5).to_local(), a.to_local() * 2.5)
    handled.clear()
    assert taeda.equal((a * 3.5).to_local(), a.to_local() * 3.5)
    assert not handled
    assert (a * 2).dtype == taeda.float32
    assert handled.pop("aten::mul.Tensor") == 1  # an int is another call
    assert a.sum(1).shape == (2 * COUNT,)
    assert a.sum(0).shape == (4,)
    assert a.sum(1, keepdim=True).shape == (2 * COUNT, 1)
    assert handled["aten::sum.dim_IntList"] == 3
    whole = a.redistribute(placements=[Replicate()])
    handled.clear()
    assert (whole * 2.5).placements == (Replicate(),)
    assert handled["aten::mul.Tensor"] == 1


def test_writes_and_views_are_those_of_one_tensor(mesh, handled):
    a = _rows(mesh)
    a.clone().add_(1)
    a.unsqueeze(1)
    base = a.clone()
    version = base._version
    handled.clear()
    assert base.add_(1) is base
    assert base._version == version + 1
    view = base.unsqueeze(1)
    assert not handled
    assert view._base is base
    view.mul_(2)
    assert base._version == version + 2
    assert taeda.equal(base.to_local(), (a.to_local() + 1) * 2)


def test_gradients_of_known_calls(mesh, handled):
    def gradient():
        a = _rows(mesh).requires_grad_()
        (a.relu() * a).sum().backward()
        return a.grad

    first = gradient()
    handled.clear()
    second = gradient()
    assert not handled
    assert taeda.equal(second.to_local(), first.to_local())
    assert second.placements == (Shard(0),)


def test_modes_and_subclasses_see_known_calls(mesh):
    class Seeing(TorchDispatchMode):
        names: list = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(func.name())
            return func(*args, **(kwargs or {}))

    class Louder(DTensor):
        calls = 0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Louder.calls += 1
            return DTensor.__torch_dispatch__(func, types, args, kwargs)

    a = _rows(mesh)
    a + a, a + a
    with Seeing() as mode:
        b = a + a
    assert "aten::add.Tensor" in mode.names
    assert taeda.equal(b.to_local(), a.to_local() * 2)
    made = taeda._C._make_wrapper_subclass(
        Louder, a.shape, a.stride(), 0, a.dtype, a.device
    )
    made._local_tensor, made._spec = a.to_local(), a._spec
    for count in (1, 2):
        assert taeda.equal((made + made).to_local(), b.to_local())
        assert Louder.calls == count


def test_what_fails_on_the_parts_is_the_handlers(mesh, handled):
    a = _rows(mesh)
    assert a.view(8 * COUNT).shape == (8 * COUNT,)
    local = taeda.arange(4.0 * COUNT).reshape(4, COUNT).t()
    strided = DTensor(local, a._spec, requires_grad=False)
    handled.clear()
    # The whole could be viewed so, and this part has other strides.
    made = strided.view(8 * COUNT)
    assert handled["aten::view"] == 1
    assert taeda.equal(made.to_local(), local.reshape(4 * COUNT))


def test_ranks_do_not_know_each_others_calls():
    for rank, rows in enumerate((2, 1)):
        mesh = _mesh(rank)
        a = distribute_tensor(taeda.zeros(3, 4), mesh, [Shard(0)])
        for _ in range(2):
            assert a.view(3, 2, 2).to_local().shape == (rows, 2, 2)
    dist.destroy_process_group()


def test_threads_share_known_calls(mesh):
    a, failures = _rows(mesh), []
    part = a.to_local()

    def work():
        for i in range(200):
            if i % 20 == 0:
                taeda._C._forget_calls()
            with taeda.no_grad():
                got = (a * 2 + a).relu().sum(1)
            if not taeda.equal(got.to_local(), (part * 3).sum(1)):
                failures.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_calls_are_counted_and_forgotten(mesh):
    a = distribute_tensor(taeda.zeros(2), mesh, [Shard(0)])
    taeda._C._forget_calls()
    for _ in range(2):
        for n in range(20):
            a * n
    assert taeda._C._forget_calls() == 20
    assert taeda._C._forget_calls() == 0
