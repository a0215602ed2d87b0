"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right

from taeda.optim._schedule_base import LRScheduler, group_values, set_rate
from taeda.optim._schedule_plateau import ReduceLROnPlateau


class _Group(LRScheduler):
    """Several schedules of one optimizer."""

    _unsaved = ("optimizer", "_schedulers")

    def _check_members(self, schedulers, optimizer) -> None:
        name = type(self).__name__
        for place, member in enumerate(schedulers):
            if not hasattr(member, "optimizer"):
                raise TypeError(
                    f"{name}: the schedule at index {place} has no `optimizer`"
                )
            if isinstance(member, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} cannot hold ReduceLROnPlateau (index {place}): its "
                    "step() needs a metric"
                )
            if optimizer is not member.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, "
                    f"but {type(member).__name__} at index {place} has another"
                )

    def state_dict(self) -> dict:
        """The state, with that of each schedule."""
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what `state_dict()` returned."""
        rest = dict(state_dict)
        saved = rest.pop("_schedulers")
        super().load_state_dict(rest)
        for member, state in zip(self._schedulers, saved, strict=True):
            member.load_state_dict(state)


class SequentialLR(_Group):
    """One schedule after another, changing at the milestones.

    Args:
        optimizer (Optimizer): whose rates are set.
        schedulers (list): in order. milestones (list of int): one fewer.
        last_epoch (int): -1 to begin, else where to go on.

    Raises:
        ValueError: none given, another optimizer's, or numbers that do not fit.

    Example:
        >>> warmup = taeda.optim.lr_scheduler.LinearLR(optimizer, total_iters=500)
        >>> decay = taeda.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
        >>> schedule = SequentialLR(optimizer, [warmup, decay], milestones=[500])
    """

    def __init__(
        self, optimizer, schedulers: list, milestones: list, last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got 0")
        self._check_members(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be "
                f"one more than the number of milestone points, but got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        # Each member has set its first rate: take that back, then start the first.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None) -> None:
        """Take back the first step of every schedule within."""
        _undo(self if sched is None else sched)

    def step(self) -> None:
        """Advance the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        member = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            member._update_lr(0)
        else:
            member.step()
        self._last_lr = member.get_last_lr()


def _undo(schedule) -> None:
    if hasattr(schedule, "_schedulers"):
        for member in schedule._schedulers:
            _undo(member)
    elif hasattr(schedule, "last_epoch"):
        schedule.last_epoch -= 1


class ChainedScheduler(_Group):
    """Several schedules at once: each acts on what the one before made.

    Args:
        schedulers: at least one. optimizer (Optimizer): theirs; optional.

    Raises:
        ValueError: none given, or another optimizer's.

    Example:
        >>> warmup = taeda.optim.lr_scheduler.LinearLR(optimizer, total_iters=500)
        >>> decay = taeda.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
        >>> schedule = ChainedScheduler([warmup, decay])
    """

    def __init__(self, schedulers, optimizer=None) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained"
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check_members(schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = group_values(optimizer, "lr")

    def step(self) -> None:
        """Advance every schedule."""
        for member in self._schedulers:
            member.step()
        self._last_lr = group_values(self.optimizer, "lr")
