"""What every style has."""

from __future__ import annotations

from abc import ABC, abstractmethod

from taeda import nn

from ...device_mesh import DeviceMesh

__all__ = ["ParallelStyle"]


class ParallelStyle(ABC):
    """How a module is made parallel; `parallelize_module` applies it."""

    # Whose weights count: a rank's place in the mesh, or None for each rank's own.
    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        """Changes the module in place and returns it."""
