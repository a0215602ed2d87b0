"""A module trained by several processes; without process groups it refuses."""

from __future__ import annotations

from taeda.nn.modules import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Averages gradients over the processes of a group.

    Raises:
        ValueError: always, for there is no process group in this build.
    """

    def __init__(self, module: Module, *args, **kwargs) -> None:
        from taeda import distributed

        super().__init__()
        distributed.get_world_size(kwargs.get("process_group"))
