"""What tensors are made of: numbers of any size, arrays without axes, storages."""

from __future__ import annotations

import numpy
import pytest
import taeda


def test_whole_numbers_of_more_than_64_bits() -> None:
    assert taeda.tensor(2**70, dtype=taeda.float64).item() == 2.0**70
    assert taeda.tensor([-(2**70), 1], dtype=taeda.float32).tolist() == [-(2.0**70), 1]
    assert taeda.tensor(2**70, dtype=taeda.complex64).item() == 2.0**70
    assert taeda.tensor([2**70, 0], dtype=taeda.bool).tolist() == [True, False]
    for dtype in (None, taeda.int64, taeda.uint8):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            taeda.tensor(2**70, dtype=dtype)
    with pytest.raises(OverflowError):
        taeda.tensor(10**400, dtype=taeda.float64)


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_arrays_without_axes_among_numbers() -> None:
    made = taeda.tensor([[7, numpy.array(5)], [numpy.array(9), 5.0]])
    assert made.dtype == taeda.float32
    assert made.tolist() == [[7, 5], [9, 5]]


def test_arrays_without_axes_as_sizes() -> None:
    three = numpy.array(3)
    assert taeda.ones(three, numpy.int64(4)).shape == (3, 4)
    assert taeda.zeros(three).shape == (3,)
    assert taeda.ones(12).view(three, 4).shape == (3, 4)
    assert taeda.ones(1).new_empty(three).shape == (3,)
    for wrong in (numpy.array(3.0), numpy.array("x")):
        with pytest.raises(TypeError):
            taeda.ones(wrong)


def test_legacy_types_share_a_storage() -> None:
    x = taeda.tensor([1.0, 2.0])
    for made in (
        x.new(x.storage()),
        taeda.FloatTensor(x.storage()),
        taeda.Tensor(x.storage()),
    ):
        assert made.tolist() == [1, 2]
        assert made.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        x.new(taeda.tensor([1]).storage())


def test_storages_count_their_bytes() -> None:
    empty, ten = (taeda.ones(n).storage().__sizeof__() for n in (0, 10))
    assert ten - empty == 40


def test_complex_wants_one_element() -> None:
    assert complex(taeda.tensor([2.0])) == 2
    for x in (taeda.ones(2), taeda.ones(0)):
        with pytest.raises(ValueError, match="only one element tensors"):
            complex(x)


def test_asarray_keeps_the_history() -> None:
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    assert taeda.asarray(x) is x
    for options in ({}, {"copy": True}, {"dtype": taeda.float64}):
        (grad,) = taeda.autograd.grad(taeda.asarray(y, **options).sum(), y)
        assert grad.tolist() == [1, 1]
    assert taeda.asarray(y, requires_grad=False).grad_fn is None
    assert not taeda.asarray(x, requires_grad=False, copy=True).requires_grad


def test_asarray_says_why_memory_cannot_be_shared() -> None:
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        taeda.asarray(numpy.float64(0.5), copy=False)
    with pytest.raises(ValueError, match="with dtype '.*float32' into dtype '.*64'"):
        taeda.asarray(taeda.ones(2), dtype=taeda.float64, copy=False)
    assert taeda.asarray(numpy.float64(0.5)).dtype == taeda.float64
