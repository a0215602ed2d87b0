"""Padding layers."""

from __future__ import annotations

from taeda import Tensor

from .. import functional as F
from .batchnorm import _expect
from .module import Module
from .utils import _ntuple

__all__ = [
    f"{kind}Pad{d}d"
    for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
    for d in (1, 2, 3)
]


class _PadNd(Module):
    """Padding of the last d dimensions by a mode."""

    __constants__ = ["padding"]
    _mode: str
    _d: int

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._d)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input) -> None:
        _expect(input, self._d + 1, self._d + 2)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with what stands at the other end.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.CircularPad1d((1, 0))(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    _d = 1

    def __init__(self, padding) -> None:
        super().__init__(padding)


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with what stands at the other end.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.CircularPad2d(1)(taeda.ones(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _d = 2

    def __init__(self, padding) -> None:
        super().__init__(padding)


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with what stands at the other end.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.CircularPad3d(1)(taeda.ones(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _d = 3

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its reflection at the edge.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReflectionPad1d((1, 0))(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    _d = 1

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with its reflection at the edge.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReflectionPad2d(1)(taeda.ones(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _d = 2

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with its reflection at the edge.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReflectionPad3d(1)(taeda.ones(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _d = 3

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with the edge's value.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReplicationPad1d((1, 0))(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    _d = 1

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions with the edge's value.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReplicationPad2d(1)(taeda.ones(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _d = 2

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with the edge's value.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ReplicationPad3d(1)(taeda.ones(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _d = 3

    def __init__(self, padding) -> None:
        super().__init__(padding)


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a constant.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.
        value: the constant.

    Example:
        >>> tuple(taeda.nn.ConstantPad1d((1, 0), 3.5)(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    _d = 1

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding, value)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a constant.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.
        value: the constant.

    Example:
        >>> tuple(taeda.nn.ConstantPad2d(1, 3.5)(taeda.ones(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _d = 2

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding, value)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a constant.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.
        value: the constant.

    Example:
        >>> tuple(taeda.nn.ConstantPad3d(1, 3.5)(taeda.ones(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _d = 3

    def __init__(self, padding, value: float) -> None:
        super().__init__(padding, value)


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zero.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ZeroPad1d((1, 0))(taeda.ones(1, 2)).shape)
        (1, 3)
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zero.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ZeroPad2d(1)(taeda.ones(1, 2, 2)).shape)
        (1, 4, 4)
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zero.

    Args:
        padding: (begin, end) from the last dimension on, or one number for all.

    Example:
        >>> tuple(taeda.nn.ZeroPad3d(1)(taeda.ones(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
