"""index_reduce: derivatives of its reductions, and an index with an offset."""

from __future__ import annotations

import pytest
import taeda
from taeda.autograd import gradcheck


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_gradients(reduce: str, include_self: bool) -> None:
    taeda.manual_seed(4)
    x = taeda.randn(3, 4, 2, dtype=taeda.float64).requires_grad_()
    source = taeda.randn(3, 5, 2, dtype=taeda.float64).requires_grad_()
    index = taeda.tensor([3, 0, 3, 1, 0])

    def call(x: taeda.Tensor, source: taeda.Tensor) -> taeda.Tensor:
        return x.index_reduce(1, index, source, reduce, include_self=include_self)

    assert gradcheck(call, (x, source))


def test_ties_share_the_gradient() -> None:
    x = taeda.tensor([2.0, 1.0]).requires_grad_()
    source = taeda.tensor([2.0, 5.0]).requires_grad_()
    x.index_reduce(0, taeda.tensor([0, 1]), source, "amax").sum().backward()
    assert x.grad.tolist() == [0.5, 0.0]
    assert source.grad.tolist() == [0.5, 1.0]


def test_an_index_that_is_part_of_a_longer_one() -> None:
    index = taeda.tensor([9, 1, 0])[1:]
    out = taeda.zeros(2).index_reduce(0, index, taeda.tensor([3.0, 4.0]), "amax")
    assert out.tolist() == [4.0, 3.0]


def test_second_derivatives_of_several_zeros_are_refused():
    x = taeda.tensor([1.0], dtype=taeda.float64, requires_grad=True)
    place = taeda.tensor([0, 0])

    def second(values, function):
        src = taeda.tensor(values, dtype=taeda.float64, requires_grad=True)
        out = function(x, 0, place, src, "prod").sum()
        (grad,) = taeda.autograd.grad(out, src, create_graph=True)
        return taeda.autograd.grad(grad.sum(), src)[0]

    for function in (taeda.scatter_reduce, taeda.index_reduce):
        assert second([2.0, 3.0], function).tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="Double backward is unsupported for"):
            second([0.0, 0.0], function)
