"""The limits of dtypes: `finfo` and `iinfo`."""

from __future__ import annotations

import math

from taeda import _C

# Of a binary format: bits of precision (with the hidden one), the largest number, the
# exponent of the smallest normal one. IEEE 754, bfloat16 and the OCP 8-bit formats.
_FORMATS = {
    "float16": (11, 65504.0, -14),
    "bfloat16": (8, 3.3895313892515355e38, -126),
    "float32": (24, 3.4028234663852886e38, -126),
    "float64": (53, 1.7976931348623157e308, -1022),
    "float8_e5m2": (3, 57344.0, -14),
    "float8_e4m3fn": (4, 448.0, -6),
    "float8_e5m2fnuz": (3, 57344.0, -15),
    "float8_e4m3fnuz": (4, 240.0, -7),
    "float8_e8m0fnu": (1, 1.7014118346046923e38, -127),
}


class _Info:
    """What both classes have: a dtype's name and size; equal for equal dtypes."""

    __slots__ = ("_type",)
    __module__ = "taeda"

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return repr(self._type).rpartition(".")[2]

    @property
    def bits(self) -> int:
        """How many bits an element has."""
        return self._type.itemsize * 8

    def __eq__(self, other) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._type == other._type

    def __hash__(self) -> int:
        return hash(self._type)


class finfo(_Info):
    """The limits of a floating-point dtype.

    Args:
        type: the dtype, the default one if none is given; of a complex dtype, that of
            its parts counts.

    Raises:
        TypeError: for any other dtype.

    Attributes:
        eps (float): the distance from 1 to the next larger number.
        max, min (float): the largest and the lowest finite number.
        tiny (float): the smallest positive number with all its digits.
        resolution (float): one unit of the last decimal digit that counts, near 1.

    Example:
        >>> taeda.finfo(taeda.float16).max
        65504.0
    """

    __slots__ = ("eps", "max", "min", "resolution", "tiny")
    __module__ = "taeda"

    def __init__(self, type=None) -> None:
        dtype = _C.get_default_dtype() if type is None else _checked(type)
        self._type = dtype.to_real() if dtype.is_complex else dtype
        if not self._type.is_floating_point:
            _refuse("finfo", "a floating point", "iinfo")
        precision, self.max, exponent = _FORMATS[self.dtype]
        self.eps = 2.0 ** (1 - precision)
        self.tiny = 2.0**exponent
        self.min = self.tiny if self.dtype == "float8_e8m0fnu" else -self.max
        # PyTorch's: what the last decimal digit that is always right is worth.
        self.resolution = 10.0 ** -math.floor((precision - 1) * math.log10(2))

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number of full precision."""
        return self.tiny

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        facts = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({facts}, dtype={self.dtype})"


class iinfo(_Info):
    """The limits of an integer dtype.

    Raises:
        TypeError: for any other dtype.

    Example:
        >>> taeda.iinfo(taeda.int8)
        iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ()
    __module__ = "taeda"

    def __init__(self, type=None) -> None:
        if type is None:
            raise TypeError("iinfo() missing 1 required argument: 'type'")
        self._type = dtype = _checked(type)
        if dtype.is_floating_point or dtype.is_complex or dtype is _C.bool:
            _refuse("iinfo", "an integer", "finfo")

    @property
    def max(self) -> int:
        """The largest number."""
        return 2 ** (self.bits - self._type.is_signed) - 1

    @property
    def min(self) -> int:
        """The smallest number."""
        return -(2 ** (self.bits - 1)) if self._type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def _checked(dtype):
    # float, int, ... stand for dtypes too.
    return _C._VariableFunctions.promote_types(dtype, dtype)


def _refuse(name: str, kind: str, other: str):
    library = repr(_C.float32).partition(".")[0]
    raise TypeError(
        f"{library}.{name}() requires {kind} input type. Use {library}.{other} to "
        f"handle 'torch.{name}'"
    )
