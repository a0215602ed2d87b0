"""Classes bound by pybind11: identity, life time, and other libraries that use it."""

from __future__ import annotations

import subprocess
import sys
import weakref

import pytest
import taeda

CLASSES = [taeda.Generator, taeda.UntypedStorage]


@pytest.mark.parametrize("cls", CLASSES)
def test_an_object_whose_init_never_ran_is_refused(cls) -> None:
    blank = cls.__new__(cls)
    name = "seed" if cls is taeda.Generator else "nbytes"
    with pytest.raises((TypeError, RuntimeError)):
        getattr(blank, name)()


@pytest.mark.parametrize("cls", CLASSES)
def test_the_class_of_a_class_is_type(cls) -> None:
    assert type(cls) is type


def test_one_storage_has_one_object_which_dies_with_its_last_name() -> None:
    x = taeda.ones(3)
    storage = x.untyped_storage()
    assert x.untyped_storage() is storage
    assert x.view(1, 3).untyped_storage() is storage
    seen = weakref.ref(storage)
    del storage
    assert seen() is None
    assert x.untyped_storage().nbytes() == 12


def test_a_storage_outlives_its_tensor_and_is_a_buffer() -> None:
    storage = taeda.ones(2, dtype=taeda.uint8).untyped_storage()
    view = memoryview(storage)
    assert view.nbytes == 2 and not view.readonly
    del storage
    view[0] = 7
    assert bytes(view) == b"\x07\x01"


def test_methods_that_return_their_object_return_the_same_one() -> None:
    g = taeda.Generator()
    assert g.manual_seed(1) is g and g.set_state(g.get_state()) is g
    s = taeda.UntypedStorage(4)
    assert s.fill_(3) is s and s.resize_(2) is s and s.cpu() is s
    assert s.tolist() == [3, 3] and s[-1] == 3


def test_a_class_may_be_derived_from_a_generator() -> None:
    class Mine(taeda.Generator):
        pass

    g = Mine()
    g.manual_seed(5)
    again = taeda.Generator().manual_seed(5)
    assert (
        taeda.rand(3, generator=g).tolist() == taeda.rand(3, generator=again).tolist()
    )


PROGRAM = """
import {first}
import {second}
import taeda, torch
for m in (taeda, torch):
    g = m.Generator().manual_seed(3)
    assert type(g).__module__.startswith(m.__name__), type(g)
    assert m.rand(2, generator=g).shape == (2,)
    assert m.ones(2).untyped_storage().nbytes() == 8
    assert m.finfo(m.float16).max == 65504.0
    with m.no_grad():
        assert not m.is_grad_enabled()
    x = m.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
for m, other in ((taeda, torch), (torch, taeda)):
    try:
        m.rand(2, generator=other.Generator())
    except TypeError:
        continue
    raise AssertionError("a generator of the other library was taken")
"""


@pytest.mark.parametrize("first, second", [("taeda", "torch"), ("torch", "taeda")])
def test_pytorch_in_the_same_process_keeps_its_own_classes(first, second) -> None:
    program = PROGRAM.format(first=first, second=second)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_to_takes_another_tensor_by_the_name_tensor() -> None:
    like = taeda.ones(1, dtype=taeda.float64)
    assert taeda.ones(2).to(tensor=like).dtype is taeda.float64
    with pytest.raises(TypeError):
        taeda.ones(2).to(other=like)
