"""`taeda.TensorType`: the type of tensors, with what is known of one."""

from __future__ import annotations

import taeda

__all__ = ["TensorType"]


class TensorType:
    """The type of all tensors, or of those with one dtype, device and geometry.

    Made by `get`, `getInferred` and `create_from_tensor`.

    Raises:
        TypeError: it is called itself.

    Example:
        >>> taeda.TensorType.create_from_tensor(taeda.ones(2, 3)).sizes()
        [2, 3]
    """

    __slots__ = ("_known",)
    __hash__ = None

    def __new__(cls):
        raise TypeError(f"{taeda.__name__}.TensorType: No constructor defined!")

    @classmethod
    def _of(cls, known: tuple | None) -> TensorType:
        made = object.__new__(cls)
        made._known = known
        return made

    @staticmethod
    def get() -> TensorType:
        """The type of all tensors."""
        return TensorType._of(None)

    @staticmethod
    def getInferred() -> TensorType:
        """The same, for what has no annotation."""
        return TensorType._of(None)

    @staticmethod
    def create_from_tensor(t) -> TensorType:
        """The type of tensors like this one."""
        return TensorType._of(
            (t.dtype, t.device, list(t.shape), list(t.stride()), t.requires_grad)
        )

    def _part(self, place: int):
        return None if self._known is None else self._known[place]

    def dtype(self):
        """The dtype; None where it is not known, and so below."""
        return self._part(0)

    def device(self):
        """The device."""
        return self._part(1)

    def sizes(self) -> list[int] | None:
        """The sizes."""
        return self._part(2)

    def strides(self) -> list[int] | None:
        """The strides."""
        return self._part(3)

    def dim(self) -> int | None:
        """The number of dims."""
        return None if self._known is None else len(self._known[2])

    def requires_grad(self) -> bool:
        """Whether a gradient may be wanted: True where it is not known."""
        return True if self._known is None else self._known[4]

    def kind(self) -> str:
        """The name of this class."""
        return "TensorType"

    @property
    def annotation_str(self) -> str:
        """How code names it."""
        return "Tensor"

    def isSubtypeOf(self, other: TensorType) -> bool:
        """Whether all tensors of this type are of the other."""
        return other._known is None or self == other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorType):
            return NotImplemented
        return self._known == other._known

    def __repr__(self) -> str:
        return "Tensor"


TensorType.__module__ = taeda.__name__
