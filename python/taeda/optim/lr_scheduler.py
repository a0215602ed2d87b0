"""Learning-rate schedules.

The rates come from the ones in force, step by step, in PyTorch's order of
floating-point operations, so that both give the same bits; `_get_closed_form_lr`
is for `step(epoch)`.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from taeda.optim._schedule_base import (
    EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING,
)
from taeda.optim._schedule_base import LRScheduler, function_state
from taeda.optim._schedule_cycles import (
    CosineAnnealingWarmRestarts,
    CyclicLR,
    OneCycleLR,
)
from taeda.optim._schedule_groups import ChainedScheduler, SequentialLR
from taeda.optim._schedule_plateau import ReduceLROnPlateau

__all__ = [
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]


class _LRScheduler(LRScheduler):
    """The old name of the base class."""


class _FunctionSchedule(LRScheduler):
    """One function of the epoch per parameter group."""

    _unsaved = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        if len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict:
        """Everything but the optimizer; of callable objects their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [function_state(f) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` returned; functions stay as they are."""
        rest = dict(state_dict)
        saved = rest.pop("lr_lambdas")
        super().load_state_dict(rest)
        for function, attributes in zip(self.lr_lambdas, saved, strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionSchedule):
    r"""The first rate times a function of the epoch.

    $\eta_t = \eta_0 f(t)$.

    Args:
        optimizer (Optimizer): whose rates are set.
        lr_lambda: the function, or a list with one per group.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: a list of another length.

    Example:
        >>> schedule = LambdaLR(optimizer, lambda epoch: 0.95**epoch)
    """

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * function(self.last_epoch) for function, base in pairs]


class MultiplicativeLR(_FunctionSchedule):
    r"""The rate of the epoch before times a function of the epoch.

    $\eta_t = \eta_{t-1} f(t)$.

    Args:
        optimizer (Optimizer): whose rates are set.
        lr_lambda: the function, or a list with one per group.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        TypeError: not callable.

    Example:
        >>> schedule = MultiplicativeLR(optimizer, lambda epoch: 0.95)
    """

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1) -> None:
        given = lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]
        for function in given:
            if not callable(function):
                kind = type(function).__name__
                raise TypeError(f"lr_lambda should be a function, but got {kind}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        if self._is_initial:
            return self._same()
        pairs = zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        return [g["lr"] * function(self.last_epoch) for function, g in pairs]


class StepLR(LRScheduler):
    r"""Multiply the rate by gamma every `step_size` epochs.

    $\eta_t = \eta_0 \gamma^{\lfloor t / s \rfloor}$.

    Args:
        optimizer (Optimizer): whose rates are set.
        step_size (int): s. gamma (float): the factor.
        last_epoch (int): -1 to begin, else where to go on.

    Example:
        >>> schedule = StepLR(optimizer, step_size=30, gamma=0.1)
    """

    def __init__(
        self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma) if due else self._same()

    def _get_closed_form_lr(self) -> list:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    r"""Multiply the rate by gamma at each of the milestones.

    Args:
        optimizer (Optimizer): whose rates are set.
        milestones: epochs; one named twice counts twice. gamma (float): the factor.
        last_epoch (int): -1 to begin, else where to go on.

    Example:
        >>> schedule = MultiStepLR(optimizer, milestones=[30, 80], gamma=0.1)
    """

    def __init__(
        self, optimizer, milestones, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        from collections import Counter

        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        times = self.milestones.get(self.last_epoch, 0)
        return self._scaled(self.gamma**times) if times else self._same()

    def _get_closed_form_lr(self) -> list:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    r"""A reduced rate for the first epochs, then the full one.

    Args:
        optimizer (Optimizer): whose rates are set.
        factor (float): the reduction, within [0, 1]. total_iters (int): how long.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: a factor out of range.

    Example:
        >>> schedule = ConstantLR(optimizer, factor=0.5, total_iters=4)
    """

    def __init__(
        self,
        optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError(f"Expected factor within 0 and 1, but got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch == self.total_iters:
            return self._scaled(1.0 / self.factor)
        return self._same()

    def _get_closed_form_lr(self) -> list:
        full = self.last_epoch >= self.total_iters
        factor = self.factor + full * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    r"""From one factor of the rate to another in a straight line.

    $\eta_t = \eta_0 (a + (b - a) \min(t, T)/T)$.

    Args:
        optimizer (Optimizer): whose rates are set.
        start_factor (float): a, within (0, 1]. end_factor (float): b, within [0, 1].
        total_iters (int): T. last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: a factor out of range.

    Example:
        >>> schedule = LinearLR(optimizer, start_factor=0.1, total_iters=500)
    """

    def __init__(
        self,
        optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError(
                f"Expected start_factor above 0 and at most 1, but got {start_factor}"
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueError(f"Expected end_factor within 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._same()
        slope = self.end_factor - self.start_factor
        start = self.total_iters * self.start_factor
        return self._scaled(1.0 + slope / (start + (self.last_epoch - 1) * slope))

    def _get_closed_form_lr(self) -> list:
        slope = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        factor = self.start_factor + slope * done / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    r"""Multiply the rate by gamma every epoch: $\eta_t = \eta_0 \gamma^t$.

    Args:
        optimizer (Optimizer): whose rates are set. gamma (float): the factor.
        last_epoch (int): -1 to begin, else where to go on.

    Example:
        >>> schedule = ExponentialLR(optimizer, gamma=0.9)
    """

    def __init__(self, optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        return self._same() if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    r"""Down to zero along $\eta_t = \eta_0 (1 - \min(t, T)/T)^p$.

    Args:
        optimizer (Optimizer): whose rates are set.
        total_iters (int): T. power (float): p.
        last_epoch (int): -1 to begin, else where to go on.

    Example:
        >>> schedule = PolynomialLR(optimizer, total_iters=100, power=0.9)
    """

    def __init__(
        self,
        optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        now, total = self.last_epoch, self.total_iters
        if self._is_initial or now > total:
            return self._same()
        return self._scaled(
            ((1.0 - now / total) / (1.0 - (now - 1) / total)) ** self.power
        )

    def _get_closed_form_lr(self) -> list:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    r"""From the first rate to `eta_min` along half a cosine.

    $\eta_t = \eta_{min} + \frac12 (\eta_0 - \eta_{min})(1 + \cos(\pi t/T))$
    (Loshchilov and Hutter, arXiv:1608.03983, without restarts).

    Args:
        optimizer (Optimizer): whose rates are set.
        T_max (int): T. eta_min (float): least rate.
        last_epoch (int): -1 to begin, else where to go on.

    Example:
        >>> schedule = CosineAnnealingLR(optimizer, T_max=100)
    """

    def __init__(
        self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list:
        """The rates for `last_epoch`."""
        self._check_called_by_step()
        now, total, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._same()
        if self._step_count == 1 and now > 0:
            wave = 1 + math.cos(now * math.pi / total)
            return [low + (base - low) * wave / 2 for base in self.base_lrs]
        pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
        if (now - 1 - total) % (2 * total) == 0:
            # The rate before was eta_min: its ratio to the next is undefined.
            rise = 1 - math.cos(math.pi / total)
            return [g["lr"] + (base - low) * rise / 2 for base, g in pairs]
        wave = 1 + math.cos(math.pi * now / total)
        ratio = wave / (1 + math.cos(math.pi * (now - 1) / total))
        return [ratio * (g["lr"] - low) + low for _, g in pairs]

    def _get_closed_form_lr(self) -> list:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        low = self.eta_min
        return [low + (base - low) * wave / 2 for base in self.base_lrs]
