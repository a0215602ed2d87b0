"""The schedule that watches a metric."""

from __future__ import annotations

from math import inf

from taeda.optim._schedule_base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    group_values,
    require_optimizer,
    set_rate,
    warn,
)


class ReduceLROnPlateau(LRScheduler):
    r"""Reduce the rate when a metric has stopped improving.

    Args:
        optimizer (Optimizer): whose rates are set.
        mode (str): "min" or "max": which way is better.
        factor (float): the reduction, below 1. patience (int): epochs to wait.
        threshold (float), threshold_mode (str): what counts as better: "rel" by a
            share of the best, "abs" by a difference.
        cooldown (int): epochs to rest after a reduction.
        min_lr (float or list): least rates. eps (float): least change.

    Raises:
        ValueError: an option out of range. TypeError: not an Optimizer.

    Example:
        >>> schedule = ReduceLROnPlateau(optimizer, patience=3)
        >>> schedule.step(0.25)
    """

    def __init__(
        self,
        optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr=0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but is {factor}")
        self.factor = factor
        require_optimizer(optimizer)
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        given = isinstance(min_lr, (list, tuple))
        if given and len(min_lr) != count:
            raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
        self.default_min_lr = None if given else min_lr
        self.min_lrs = list(min_lr) if given else [min_lr] * count
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = group_values(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        """Forget what has been seen."""
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    def step(self, metrics, epoch: int | None = None) -> None:
        """Take the metric of an epoch and reduce the rates if it is time.

        Args:
            metrics: a number or 0-d tensor.
        """
        value = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        resting, better = self.in_cooldown, self._is_better(value, self.best)
        self.best = value if better else self.best
        bad = 0 if better or resting else self.num_bad_epochs + 1
        self.cooldown_counter -= resting
        if bad > self.patience:
            self._reduce_lr()
            bad, self.cooldown_counter = 0, self.cooldown
        self.num_bad_epochs = bad
        self._last_lr = group_values(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int | None = None) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` is "
                    f"{len(groups)}, but there are {len(self.min_lrs)} `min_lrs`: a "
                    "group was added after ReduceLROnPlateau was made; extend `min_lrs`"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)

    @property
    def in_cooldown(self) -> bool:
        """Still resting after a reduction?"""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            limit = best * (1.0 + sign * self.threshold)
        else:
            limit = best + sign * self.threshold
        return value < limit if self.mode == "min" else value > limit

    def _init_is_better(self, mode, threshold, threshold_mode) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode, self.threshold = mode, threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` returned."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
