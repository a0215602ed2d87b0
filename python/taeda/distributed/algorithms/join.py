"""Training in which ranks run out of inputs at different times."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import taeda

from .. import _collectives as collectives

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank without inputs does in place of the class that it stands for."""

    def main_hook(self) -> None:
        """Called once for each iteration that other ranks still run."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all ranks have ended.

        Args:
            is_last_joiner: whether this rank was among the last.
        """


class _JoinConfig:
    """How a `Join` wants its members to act; none is active outside of it."""

    def __init__(self, enable, throw_on_early_termination, is_first_joinable) -> None:
        self.enable = enable
        self.throw_on_early_termination = throw_on_early_termination
        self.is_first_joinable = is_first_joinable

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of a class outside of a `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """A class that calls collectives in each iteration."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The stand-in for this object."""

    @property
    @abstractmethod
    def join_device(self) -> taeda.device:
        """Where the tensors of bookkeeping lie."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Whose ranks are counted."""


class Join:
    """A block in which ranks may run out of inputs.

    Args:
        joinables: what calls collectives, in the order in which it does.
        enable: False makes the block do nothing.
        throw_on_early_termination: every rank raises when the first runs out.
        kwargs: given to each `join_hook`.

    Raises:
        ValueError: no members, or members of several groups.
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throw = enable, throw_on_early_termination
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._group = joinables[0].join_process_group
        self._device = joinables[0].join_device
        self._rank = self._group.rank()
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, self._throw, i == 0)

    def __enter__(self) -> Join:
        return self

    def __exit__(self, type, value, traceback) -> None:
        if not self._enable or type is not None:
            return
        self._run_hooks()
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _run_hooks(self) -> None:
        turns, is_last = 0, True
        while True:
            running = self._count_running()
            if running == 0:
                break
            if self._throw:
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            is_last = False
            turns += 1
            if turns == 1000:
                warnings.warn(
                    "Join: more than 1000 iterations run without this rank's inputs",
                    stacklevel=3,
                )
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _count_running(self) -> int:
        count = taeda.zeros(1, device=self._device)
        collectives.all_reduce(count, group=self._group)
        return int(count)

    @staticmethod
    def notify_join_context(joinable: Joinable):
        """Tells ranks without inputs that this one goes on.

        Args:
            joinable: called before its collectives of an iteration; the first of the
                block's members tells.

        Returns:
            A work, whose tensor is the number of ranks that go on; None outside of a
            block and for members after the first.

        Raises:
            RuntimeError: a rank has no more inputs, and the block wants that told.
        """
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = collectives.all_reduce(
            taeda.ones(1, device=device), group=group, async_op=True
        )
        if config.throw_on_early_termination:
            ended = work.result()[0] < group.size()
            if bool(ended):
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across "
                    "all ranks."
                )
        return work
