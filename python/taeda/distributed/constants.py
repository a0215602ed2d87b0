"""Time limits of process groups."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["default_pg_timeout", "default_pg_nccl_timeout"]

# A collective that takes longer raises; half an hour leaves room for checkpoints.
default_pg_timeout: timedelta = timedelta(minutes=30)
# There is no NCCL in this build.
default_pg_nccl_timeout: timedelta | None = None
