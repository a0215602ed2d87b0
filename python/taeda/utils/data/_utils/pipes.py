"""What a pass tells the pipes of its dataset: seeds, and the shares of workers."""

from __future__ import annotations

import taeda
from taeda.utils.data.dataset import is_pipe

__all__ = ["settle", "share"]


def settle(dataset, seed: int) -> None:
    """Give the random pipes behind a pipe their seeds, in all workers the same."""
    from taeda.utils.data.graph_settings import apply_random_seed

    apply_random_seed(dataset, taeda.Generator().manual_seed(seed))


def share(dataset, workers: int, number: int) -> None:
    """Tell the pipes behind a pipe which of the workers this is.

    Raises:
        NotImplementedError: several ranks; their seeds would have to be sent around.
    """
    if not (is_pipe(dataset) or is_pipe(dataset, "MapDataPipe")):
        return
    ranks = taeda.distributed
    if ranks.is_available() and ranks.is_initialized() and ranks.get_world_size() > 1:
        raise NotImplementedError("DataLoader: pipes shared by several ranks")
    from taeda.utils.data.graph_settings import apply_sharding

    apply_sharding(dataset, workers, number)
