"""Mixing channels of groups."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .module import Module
from .utils import described

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Puts the first channels of all groups first, then the second ones, ...

    Zhang et al., "ShuffleNet", 2017.

    Args:
        groups: number of groups; divides the channels.

    Example:
        >>> x = taeda.arange(4.0).view(1, 4, 1, 1)
        >>> taeda.nn.ChannelShuffle(2)(x).flatten()
        tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return described(self, "groups")
