"""Constructors that are made from declared options."""

from __future__ import annotations

import inspect

import pytest
import taeda
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim._rule import RuleOptimizer

NAMES = sorted(set(taeda.optim.__all__) - {"lr_scheduler", "swa_utils", "Optimizer"})
NAMES.remove("swap_in_optimizer_params_and_state")


def shape(function) -> list[tuple]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind.name, p.default) for p in parameters]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_and_groups_are_pytorchs(name) -> None:
    import torch

    mine, its = getattr(taeda.optim, name), getattr(torch.optim, name)
    assert shape(mine) == shape(its)
    assert shape(mine.__init__) == shape(its.__init__)
    assert not {p for p in shape(mine) if hasattr(mine, p[0])}
    mine = mine([taeda.nn.Parameter(taeda.ones(2, 2))])
    its = its([torch.nn.Parameter(torch.ones(2, 2))])
    assert list(mine.param_groups[0]) == list(its.param_groups[0])
    assert mine.defaults == its.defaults


@declares_options
class Halving(RuleOptimizer):
    """Halves every weight, `times` times."""

    params: list
    times: int = 1
    lr: float = 1.0
    _: KW_ONLY
    name: str = "half"

    def _fresh(self, p, group) -> dict:
        return {}

    def _rule(self, x, g, s, group, t, keep) -> None:
        x.mul_(0.5 ** group["times"])


def test_an_optimizer_of_ones_own() -> None:
    p = taeda.nn.Parameter(taeda.tensor([8.0]))
    p.grad = taeda.zeros(1)
    optimizer = Halving([p], 2)
    optimizer.step()
    assert p.item() == 2
    assert optimizer.defaults == {"times": 2, "lr": 1.0, "name": "half"}
    with pytest.raises(TypeError, match="Halving.__init__.. takes from 2 to 4 pos"):
        Halving([p], 2, 1.0, "other")
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        Halving([p], lr=-1)


def test_a_subclass_has_its_own_constructor() -> None:
    class Slow(taeda.optim.SGD):
        unrelated: int = 3

        def __init__(self, params) -> None:
            super().__init__(params, lr=1e-4)

    optimizer = Slow([taeda.nn.Parameter(taeda.ones(1))])
    assert optimizer.defaults["lr"] == 1e-4 and optimizer.unrelated == 3


@pytest.mark.parametrize("kind", ["Adafactor", "SparseAdam"])
def test_loading_a_state_adds_no_option_that_the_optimizer_lacks(kind):
    optimizer = getattr(taeda.optim, kind)([taeda.nn.Parameter(taeda.ones(2))])
    before = set(optimizer.param_groups[0])
    optimizer.load_state_dict(optimizer.state_dict())
    assert set(optimizer.param_groups[0]) == before


def test_a_differentiable_step_of_adagrad_has_a_gradient():
    p = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    g = taeda.tensor([1.0, 2.0], dtype=taeda.float64, requires_grad=True)
    moved = p.clone()
    moved.grad = g
    taeda.optim.Adagrad([moved], lr=0.1, eps=0.5, differentiable=True).step()
    (grad,) = taeda.autograd.grad(moved.sum(), g)
    # d/dg of -lr g / (|g| + eps) is -lr eps / (|g| + eps)^2.
    assert grad.tolist() == pytest.approx([-0.05 / 1.5**2, -0.05 / 2.5**2])
