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
