"""Hinge losses of classes against classes."""

from __future__ import annotations

import numpy as np
import pytest
import taeda

REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin(same, values, p, reduction):
    def program(T, x, target, weight):
        return T.nn.functional.multi_margin_loss(
            x, target, p=p, margin=0.7, weight=weight.detach(), reduction=reduction
        )

    same(program, values(4, 3), np.array([0, 2, 1, 2]), np.abs(values(3, seed=1)))


@pytest.mark.parametrize("shape", [(3,), ()])
def test_multi_margin_of_one_row(same, values, shape):
    def program(T, x, target):
        return T.nn.functional.multi_margin_loss(x, target)

    same(program, values(*shape), np.array(0))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_multilabel_margin(same, values, reduction):
    target = np.array([[3, 0, -1, 1], [1, 2, 3, 0], [-1, 0, 1, 2]])

    def program(T, x, target):
        return T.nn.functional.multilabel_margin_loss(x, target, reduction=reduction)

    same(program, values(3, 4), target)


def test_errors():
    F, x = taeda.nn.functional, taeda.ones(2, 3)
    with pytest.raises(RuntimeError, match="target out of range: 3 with 3 classes"):
        F.multi_margin_loss(x, taeda.tensor([0, 3]))
    with pytest.raises(
        RuntimeError, match=r"Expected target size \[2\], but got \[1\]"
    ):
        F.multi_margin_loss(x, taeda.tensor([0]))
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(x, taeda.tensor([0, 1, 2]))


def test_calls_without_a_reduction_give_each_element(torch):
    """PyTorch's bindings do not reduce, although the overloads take the mean."""
    calls = {
        "kl_div": lambda T, f, x: f(x, x),
        "margin_ranking_loss": lambda T, f, x: f(x, x, x),
        "cosine_embedding_loss": lambda T, f, x: f(x, x, T.ones(2)),
        "triplet_margin_loss": lambda T, f, x: f(x, x, x),
        "binary_cross_entropy_with_logits": lambda T, f, x: f(x, x),
    }
    for name, call in calls.items():
        got, want = (
            call(T, getattr(T, name), T.ones(2, 3)).shape for T in (taeda, torch)
        )
        assert tuple(got) == tuple(want) != (), name
    x = taeda.ones(2, 3)
    assert taeda._C._nn.mse_loss(x, x).shape == (2, 3)
    assert taeda.ops.aten.mse_loss(x, x).shape == ()
    assert taeda.nn.functional.mse_loss(x, x).shape == ()
