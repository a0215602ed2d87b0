"""Grids of processes: not in this build, and they say so."""

from __future__ import annotations

from taeda.distributed.tensor import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
