"""Tensors made of tensors, and attributes that packages carry over to them."""

from __future__ import annotations

import collections
import pickle

import pytest
import taeda
import torch

LIBRARIES = (taeda, torch)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_the_class_shares_a_tensor_of_any_dtype(dtype) -> None:
    for library in LIBRARIES:

        class Own(library.Tensor):
            pass

        given = library.ones(3, dtype=getattr(library, dtype))
        plain, own = library.Tensor(given), Own(given)
        assert type(own) is Own and plain.dtype == own.dtype == given.dtype
        given[0] = 0
        assert plain.tolist() == own.tolist() == given.tolist()


def test_there_is_one_cpu() -> None:
    for library in LIBRARIES:
        plain, counted = library.ones(2), library.ones(2, device="cpu:0")
        assert str(counted.device) == str(plain.to("cpu:0").device) == "cpu"
        assert library.equal(plain + counted, counted + plain)
        assert library.equal(library.cat([plain, counted.cpu()]), library.ones(4))


def test_hooks_wait_on_tensors_that_take_no_gradient() -> None:
    for library in LIBRARIES:
        seen: list = []
        x = library.ones(2)
        x._backward_hooks = collections.OrderedDict({0: seen.append})
        assert list(x._backward_hooks) == [0]
        x.requires_grad_()
        (x * 3).sum().backward()
        assert [g.tolist() for g in seen] == [[3.0, 3.0]]


def test_a_parameter_without_gradient_is_pickled() -> None:
    for library in LIBRARIES:
        held = library.nn.Parameter(library.ones(2), requires_grad=False)
        held._backward_hooks = collections.OrderedDict()
        again = pickle.loads(pickle.dumps(held))
        assert not again.requires_grad and again.tolist() == [1.0, 1.0]


DATA = {
    "one each": lambda t: [t.ones(1), t.ones(1, 1)],
    "beside numbers": lambda t: [t.ones(1, dtype=t.int64), 2.5],
    "nested": lambda t: [[t.ones(1), 2], [3, t.tensor(4.0)]],
    "rows": lambda t: [[1, 2], t.ones(2)],
    "several": lambda t: [t.ones(2)],
    "none": lambda t: [t.ones(0)],
    "fractions": lambda t: [[1, 2], t.ones(2)],
}


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("dtype", [None, "int64"])
def test_a_tensor_among_data_is_a_number(case, dtype) -> None:
    found = []
    for library in LIBRARIES:
        kind = dtype and getattr(library, dtype)
        try:
            made = library.tensor(DATA[case](library), dtype=kind)
            found.append((made.tolist(), str(made.dtype).rpartition(".")[2]))
        except (TypeError, ValueError) as error:
            found.append(type(error))
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["complex64", "uint16", "float8_e4m3fn"])
def test_new_of_dtypes_without_an_old_type(dtype) -> None:
    for library in LIBRARIES:
        x = library.ones(2).to(getattr(library, dtype))
        assert x.new(2, 3).shape == (2, 3) and x.new(2, 3).dtype == x.dtype
        assert x.new([1, 0]).float().tolist() == [1, 0]
