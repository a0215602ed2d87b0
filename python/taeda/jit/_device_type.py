"""The type of devices, as annotations name it."""

from __future__ import annotations

__all__ = ["DeviceObjType"]


class DeviceObjType:
    """The type that TorchScript has for devices; there is one object of it.

    Programs write it into annotations. `get` returns the object.

    Raises:
        TypeError: it is called; it has no constructor.

    Example::

        >>> taeda.DeviceObjType.get().annotation_str
        'Device'
    """

    annotation_str = "Device"

    def __new__(cls):
        raise TypeError("DeviceObjType: No constructor defined! Call get()")

    @staticmethod
    def get() -> DeviceObjType:
        """The one object."""
        return _THE_TYPE

    def kind(self) -> str:
        """The class's name."""
        return "DeviceObjType"

    def str(self) -> str:
        """The name in TorchScript."""
        return self.annotation_str

    __repr__ = __str__ = str


_THE_TYPE = object.__new__(DeviceObjType)
