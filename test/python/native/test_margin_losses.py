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
