"""A sampler for training in several processes."""

from __future__ import annotations

import taeda
from taeda.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every process draws its own part of the dataset, all parts of one size.

    Args:
        dataset: has a length.
        num_replicas (int), rank (int): those of the process group if None.
        shuffle (bool): a new order each epoch; call `set_epoch`.
        seed (int): the same in all processes.
        drop_last (bool): drop samples to make the parts even, instead of repeating.

    Raises:
        RuntimeError: no process group. ValueError: a rank out of range.

    Example:
        >>> sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
        >>> sampler.set_epoch(3)
    """

    def __init__(
        self,
        dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            group = _process_group()
            num_replicas = group[0] if num_replicas is None else num_replicas
            rank = group[1] if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.drop_last = 0, drop_last
        self.shuffle, self.seed = shuffle, seed
        size = len(dataset)
        even = size // num_replicas if drop_last else -(-size // num_replicas)
        self.num_samples = even
        self.total_size = even * num_replicas

    def __iter__(self):
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            generator = taeda.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = taeda.randperm(size, generator=generator).tolist()
        if size and len(order) < self.total_size:
            order *= -(-self.total_size // size)
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, so that its order is new and the same everywhere."""
        self.epoch = epoch


def _process_group() -> tuple[int, int]:
    distributed = taeda.distributed
    if not distributed.is_available():
        raise RuntimeError(
            "DistributedSampler: requires the distributed package to be available"
        )
    return distributed.get_world_size(), distributed.get_rank()
