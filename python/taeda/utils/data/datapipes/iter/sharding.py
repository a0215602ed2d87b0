"""Parts of the samples for processes that share the work."""

from __future__ import annotations

from enum import IntEnum

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Who divides: DISTRIBUTED among groups of workers; DEFAULT only alone."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe):
    """A pipe that can be told which part of its samples to give."""

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group=None
    ):
        raise NotImplementedError(f"{type(self).__name__}.apply_sharding")


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """The part of the samples that falls to this process (functional: ditto).

    The loader tells it how many workers there are. Without it each of them gives all.

    Args:
        source_datapipe: the source.
        sharding_group_filter: the only group of `SHARDING_PRIORITIES` that counts.

    Example:
        >>> pipe = IterableWrapper(range(5)).sharding_filter()
        >>> pipe.apply_sharding(2, 1)
        >>> list(pipe)
        [1, 3]
    """

    def __init__(self, source_datapipe, sharding_group_filter=None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict = {}
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group=SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Give the samples of number `instance_id`, and each `num_of_instances` on.

        Raises:
            ValueError: instance_id is out of range.
            RuntimeError: DEFAULT and another group have both divided.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than "
                f"num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if any(
            (group == default) != (sharding_group == default) for group in self.groups
        ):
            raise RuntimeError(
                "ShardingFilter cannot mix DEFAULT and non DEFAULT groups"
            )
        self.groups[sharding_group] = (num_of_instances, instance_id)
        wanted = self.sharding_group_filter
        total, place = 1, 0
        for group in sorted(self.groups, reverse=True):
            if wanted is None or group == wanted:
                count, number = self.groups[group]
                place += total * number
                total *= count
        self.num_of_instances, self.instance_id = total, place

    def __iter__(self):
        for number, sample in enumerate(self.source_datapipe):
            if number % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        count = length_of(self, self.source_datapipe)
        whole, rest = divmod(count, self.num_of_instances)
        return whole + (self.instance_id < rest)
