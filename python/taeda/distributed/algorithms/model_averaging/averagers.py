"""When models are averaged."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ... import group as _groups
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters, and counts steps.

    Args:
        process_group: the ranks; all if None.
    """

    def __init__(self, process_group=None) -> None:
        self.step = 0
        self.process_group = process_group or _groups.WORLD

    @abstractmethod
    def average_parameters(self, params):
        """Called after each step of an optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages at every `period`-th step after a warm-up.

    Args:
        period: steps between two averages.
        warmup_steps: steps before the first.
        process_group: the ranks; all if None.

    Raises:
        ValueError: a number that is too small.
    """

    def __init__(self, period, warmup_steps=0, process_group=None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params) -> None:
        """Averages where this step is one of those.

        Args:
            params: parameters, or an optimizer's groups.
        """
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
