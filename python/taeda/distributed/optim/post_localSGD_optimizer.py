"""Local steps, and an average of parameters now and then."""

from __future__ import annotations

import warnings

from taeda.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """An optimizer whose parameters are averaged over ranks after its steps.

    Args:
        optim: the optimizer of each rank.
        averager: says when, and averages.
    """

    def __init__(self, optim: Optimizer, averager) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self):  # type: ignore[override]
        """The inner optimizer's."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict:
        """The inner optimizer's state, and at which step the averager is."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes a state of `state_dict`."""
        known = "step" in state_dict
        if not known:
            warnings.warn(
                "PostLocalSGDOptimizer: the state has no step of the averager, which "
                "begins at 0",
                stacklevel=2,
            )
        self.averager.step = state_dict["step"] if known else 0
        self.optim.load_state_dict(state_dict)

    def step(self, closure=None):  # type: ignore[override]
        """A step of the inner optimizer, then of the averager."""
        result = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:  # type: ignore[override]
        """Clears the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict) -> None:
        """Adds parameters to the inner optimizer."""
        self.optim.add_param_group(param_group)
