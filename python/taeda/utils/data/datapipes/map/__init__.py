"""Pipes whose samples are found by index or key."""

from __future__ import annotations

from ..datapipe import MapDataPipe
from ._pipes import BatcherMapDataPipe as Batcher
from ._pipes import ConcaterMapDataPipe as Concater
from ._pipes import MapperMapDataPipe as Mapper
from ._pipes import SequenceWrapperMapDataPipe as SequenceWrapper
from ._pipes import ShufflerIterDataPipe as Shuffler
from ._pipes import ZipperMapDataPipe as Zipper

__all__ = [
    "Batcher",
    "Concater",
    "MapDataPipe",
    "Mapper",
    "SequenceWrapper",
    "Shuffler",
    "Zipper",
]
