"""Writes event files for TensorBoard; `SummaryWriter` is the one to start with.

Raises:
    ImportError: protobuf or NumPy is missing (`pip install "taeda[tensorboard]"`).
"""

from __future__ import annotations

try:
    import google.protobuf
    import numpy  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError(
        f"taeda.utils.tensorboard needs the package {error.name}, which is not "
        'installed: pip install "taeda[tensorboard]"'
    ) from error
from ._records import RecordWriter
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]

del google
