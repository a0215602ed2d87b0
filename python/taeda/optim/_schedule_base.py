"""What every learning-rate schedule shares."""

from __future__ import annotations

import taeda
from taeda.optim._rule import as_scalar
from taeda.optim.optimizer import Optimizer

_DOCS = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated; call `scheduler.step()` instead."
)


def _private(value):
    """A copy of a tensor, so that later writes to it do not show."""
    return value.clone() if isinstance(value, taeda.Tensor) else value


def group_values(optimizer, key: str) -> list:
    """`key` of every parameter group."""
    return [_private(group[key]) for group in optimizer.param_groups]


def per_group(name: str, optimizer, value) -> list:
    """One value per parameter group, from a number or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [_private(v) for v in value]


def set_rate(group: dict, value, key: str = "lr") -> None:
    """Set an option; a tensor keeps its identity (a captured graph reads it)."""
    if isinstance(group[key], taeda.Tensor):
        group[key].fill_(as_scalar(value))
    else:
        group[key] = value


def set_momentum(group: dict, value, use_beta1: bool) -> None:
    """Set the momentum, which Adam and its kin call betas[0]."""
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def warn(text: str, level: int = 3) -> None:
    import warnings

    warnings.warn(text, UserWarning, stacklevel=level)


def require_optimizer(optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _track(optimizer) -> None:
    """Note on the optimizer that its step() has been called."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    from weakref import ref

    function, owner = step.__func__, ref(optimizer)

    def tracked(*args, **kwargs):
        instance = owner()
        instance._opt_called = True
        return function(instance, *args, **kwargs)

    tracked.__name__, tracked.__doc__ = function.__name__, function.__doc__
    tracked.__wrapped__ = function
    tracked._wrapped_by_lr_sched = True
    optimizer.step = tracked


class LRScheduler:
    """Base class of learning-rate schedules.

    A subclass defines `get_lr()`, which returns one rate per parameter group from
    `last_epoch`, `base_lrs` and the rates now in force.

    Args:
        optimizer (Optimizer): whose rates are set.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        TypeError: not an Optimizer. KeyError: going on without "initial_lr".

    Example:
        >>> schedule = taeda.optim.lr_scheduler.StepLR(optimizer, step_size=30)
        >>> for epoch in range(90):
        ...     optimizer.step()
        ...     schedule.step()
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    # Kept out of state_dict(); functions are saved by `_saved_functions`.
    _unsaved = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _private(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    "param 'initial_lr' is not specified in param_groups"
                    f"[{number}] when resuming scheduler with last_epoch >= 0; "
                    "load the optimizer's state first, or begin with last_epoch=-1"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in self._unsaved}

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The rates that the last `step()` set, one per group."""
        return self._last_lr

    def get_lr(self) -> list:
        """The rates for `last_epoch`; called by `step()`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def _check_called_by_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                4,
            )

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to `epoch`, deprecated) and set the rates."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(
                "Seems like `optimizer.step()` has been overridden after learning "
                "rate scheduler initialization; call it before "
                f"`lr_scheduler.step()`. See {_DOCS}",
                4,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: "
                "the first rate of the schedule is skipped. Call them in the opposite "
                f"order. See {_DOCS}",
                4,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", self.get_lr)
                values = closed()
        finally:
            self._get_lr_called_within_step = False
        self._assign(values)

    def _assign(self, values: list) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = group_values(self.optimizer, "lr")

    # For subclasses: the rates in force, scaled or not.
    def _same(self) -> list:
        return group_values(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def function_state(function):
    """The attributes of a callable object; None for a function, which has none."""
    from types import FunctionType

    if function is None or isinstance(function, FunctionType):
        return None
    return function.__dict__.copy()
