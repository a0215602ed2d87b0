"""The Python object of a tensor: identity, state, subclasses, lifetime."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
import taeda


def test_attributes_survive_while_cpp_holds_the_tensor():
    x = taeda.zeros(3)
    x.note = "kept"
    view = x.view(3)
    identity = id(x)
    del x
    gc.collect()
    base = view._base
    assert id(base) == identity
    assert base.note == "kept"


def test_plain_wrapper_may_be_remade():
    view = taeda.zeros(3).view(3)
    assert view._base is view._base
    assert type(view._base) is taeda.Tensor


def test_subclass_survives():
    class Mine(taeda.Tensor):
        pass

    base = taeda.Tensor._make_subclass(Mine, taeda.zeros(2))
    with taeda.overrides.DisableTorchFunctionSubclass():
        view = base.view(2)
    del base
    gc.collect()
    assert type(view._base) is Mine


def test_weak_reference_lives_as_long_as_the_tensor():
    x = taeda.zeros(3)
    ref = weakref.ref(x)
    view = x.view(3)
    del x
    gc.collect()
    assert ref() is view._base
    del view
    gc.collect()
    assert ref() is None


def test_weak_reference_callback():
    seen = []
    x = taeda.zeros(1)
    ref = weakref.ref(x, lambda _: seen.append(1))
    del x
    assert seen == [1]
    assert ref() is None


def test_finalizer_of_subclass_runs_once():
    seen = []

    class Mine(taeda.Tensor):
        def __del__(self):
            seen.append(1)

    x = taeda.zeros(2).as_subclass(Mine)
    del x
    gc.collect()
    assert seen == [1]


def test_slots_of_subclass_are_cleared():
    class Payload:
        pass

    class Mine(taeda.Tensor):
        __slots__ = ("payload",)

    x = taeda.zeros(2).as_subclass(Mine)
    x.payload = Payload()
    ref = weakref.ref(x.payload)
    del x
    gc.collect()
    assert ref() is None


def test_reference_cycle_is_collected():
    x = taeda.zeros(4)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_hash_is_identity():
    x, y = taeda.zeros(2), taeda.zeros(2)
    assert hash(x) == hash(x)
    assert len({x, y, x}) == 2
    assert x in [y, x][1:]


def test_many_wrappers_are_given_back():
    for _ in range(3):
        held = [taeda.zeros(1) for _ in range(1000)]
        del held
    assert taeda.zeros(1).tolist() == [0.0]


def test_pickle_keeps_shared_storage():
    x = taeda.tensor([1.0, 2.0, 3.0])
    y = x[1:]
    a, b = pickle.loads(pickle.dumps((x, y)))
    assert a.tolist() == [1.0, 2.0, 3.0]
    assert b.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.int64, taeda.bool])
def test_deepcopy(dtype):
    x = taeda.tensor([1, 0, 3], dtype=dtype)
    x.note = [1]
    y = copy.deepcopy(x)
    assert y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()
    assert y.note == [1] and y.note is not x.note


def test_deepcopy_keeps_sharing():
    x = taeda.tensor([1.0, 2.0])
    a, b = copy.deepcopy([x, x.view(2)])
    assert a.data_ptr() == b.data_ptr()


def test_dtype_objects_pickle_to_themselves():
    for value in (taeda.float32, taeda.strided, taeda.channels_last):
        assert pickle.loads(pickle.dumps(value)) is value
        assert copy.deepcopy(value) is value


def test_base_class_cannot_be_made():
    with pytest.raises(TypeError, match="Cannot create TensorBase"):
        taeda._C.TensorBase()


def test_what_a_weak_reference_finds_after_its_tensor_is_an_empty_one():
    x, y = taeda.empty(2), taeda.empty(2)
    reference = weakref.ref(x)
    y.grad = x
    del x
    x = reference()
    del y
    assert x.shape == (0,) and repr(x) == "tensor([])"
    with pytest.raises(RuntimeError, match="aten::sigmoid"):
        x.sigmoid()


def test_overload_packets_copy_to_themselves():
    packet = taeda.ops.aten.add
    assert copy.deepcopy(packet) is packet
    assert copy.deepcopy(packet.Tensor) is packet.Tensor
