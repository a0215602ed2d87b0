"""What is trained where: `ddp:4:384x8x384` is data parallel, 4 ranks, and a shape."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass

__all__ = ["KINDS", "Setting", "Shape"]

KINDS = ("ddp", "fsdp", "gpipe", "1f1b")


@dataclass(frozen=True)
class Shape:
    """Layers of `width` x `width`, and rows of each rank, or of a pipeline's batch."""

    width: int = 384
    layers: int = 8
    rows: int = 384

    def __str__(self) -> str:
        return "x".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Of "WIDTHxLAYERSxROWS".

        Raises:
            ValueError: another form.
        """
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*){2}", text):
            raise ValueError(f"a shape is WIDTHxLAYERSxROWS, got {text!r}")
        return cls(*map(int, text.split("x")))


@dataclass(frozen=True)
class Setting:
    """A way to train on so many ranks."""

    kind: str
    ranks: int
    shape: Shape = Shape()

    def __str__(self) -> str:
        return f"{self.kind}:{self.ranks}:{self.shape}"

    @classmethod
    def parse(cls, text: str) -> Setting:
        """Of "KIND:RANKS" or "KIND:RANKS:WIDTHxLAYERSxROWS".

        Raises:
            ValueError: another form, or an unknown kind.
        """
        kind, _, rest = text.partition(":")
        ranks, _, shape = rest.partition(":")
        if kind not in KINDS or not ranks.isdecimal():
            raise ValueError(f"a setting is KIND:RANKS[:SHAPE], got {text!r}")
        return cls(kind, int(ranks), Shape.parse(shape) if shape else Shape())
