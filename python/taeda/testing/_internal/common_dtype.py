"""Groups of dtypes."""

from __future__ import annotations

import taeda

_FLOATING = (taeda.float32, taeda.float64)
_HALF = (taeda.float16, taeda.bfloat16)
_COMPLEX = (taeda.complex64, taeda.complex128)
_INTEGRAL = (taeda.uint8, taeda.int8, taeda.int16, taeda.int32, taeda.int64)
_FLOAT8 = (
    taeda.float8_e4m3fn,
    taeda.float8_e5m2,
    taeda.float8_e4m3fnuz,
    taeda.float8_e5m2fnuz,
)
_ALL = (*_FLOATING, *_INTEGRAL)
_MPS = (
    taeda.float32,
    taeda.float16,
    taeda.bfloat16,
    taeda.int64,
    taeda.int32,
    taeda.int16,
    taeda.int8,
    taeda.uint8,
)


def _group(name: str, members: tuple):
    """A function without arguments that gives the dtypes."""

    def group() -> tuple:
        return members

    group.__name__ = group.__qualname__ = name
    group.__doc__ = (
        f"The dtypes {', '.join(str(d).partition('.')[2] for d in members)}."
    )
    return group


def _group_and(name: str, members: tuple):
    """A function that adds further dtypes."""

    def group(*dtypes) -> tuple:
        return (*members, *_checked(dtypes))

    group.__name__ = group.__qualname__ = name
    group.__doc__ = "The dtypes of the group without `_and`, and those given."
    return group


def _checked(dtypes) -> tuple:
    for dtype in dtypes:
        if not isinstance(dtype, taeda.dtype):
            raise AssertionError(f"expected a dtype, got {dtype!r}")
    return dtypes


def custom_types(*dtypes) -> tuple:
    """The dtypes given."""
    return _checked(dtypes)


empty_types = _group("empty_types", ())
floating_types = _group("floating_types", _FLOATING)
floating_types_and_half = _group("floating_types_and_half", (*_FLOATING, taeda.half))
floating_and_complex_types = _group(
    "floating_and_complex_types", (*_FLOATING, *_COMPLEX)
)
double_types = _group("double_types", (taeda.float64, taeda.complex128))
integral_types = _group("integral_types", _INTEGRAL)
all_types = _group("all_types", _ALL)
all_types_and_half = _group("all_types_and_half", (*_ALL, taeda.half))
complex_types = _group("complex_types", _COMPLEX)
all_types_and_complex = _group("all_types_and_complex", (*_ALL, *_COMPLEX))
all_mps_types = _group("all_mps_types", _MPS)
float8_types = _group("float8_types", _FLOAT8)

floating_types_and = _group_and("floating_types_and", _FLOATING)
floating_and_complex_types_and = _group_and(
    "floating_and_complex_types_and", (*_FLOATING, *_COMPLEX)
)
integral_types_and = _group_and("integral_types_and", _INTEGRAL)
all_types_and = _group_and("all_types_and", _ALL)
complex_types_and = _group_and("complex_types_and", _COMPLEX)
all_types_and_complex_and = _group_and("all_types_and_complex_and", (*_ALL, *_COMPLEX))
all_mps_types_and = _group_and("all_mps_types_and", _MPS)
float8_types_and = _group_and("float8_types_and", _FLOAT8)
all_types_complex_float8_and = _group_and(
    "all_types_complex_float8_and", (*_ALL, *_COMPLEX, *_FLOAT8)
)


def get_all_int_dtypes() -> list:
    """The dtypes of integers."""
    return list(_INTEGRAL)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list:
    """The dtypes of floating-point numbers, those of 16 bits where asked for."""
    wanted = (include_half, include_bfloat16)
    half = [d for d, w in zip(_HALF, wanted, strict=True) if w]
    return [*_FLOATING, *half]


def get_all_complex_dtypes(include_complex32: bool = False) -> list:
    """The dtypes of complex numbers."""
    return [taeda.complex32] * include_complex32 + list(_COMPLEX)


def get_all_dtypes(
    include_half: bool = True,
    include_bfloat16: bool = True,
    include_bool: bool = True,
    include_complex: bool = True,
    include_complex32: bool = False,
    include_qint: bool = False,
) -> list:
    """All dtypes but those that are left out.

    Raises:
        NotImplementedError: include_qint.
    """
    if include_qint:
        raise NotImplementedError("get_all_dtypes: include_qint is not implemented")
    dtypes = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    dtypes += [taeda.bool] * include_bool
    return dtypes + (
        get_all_complex_dtypes(include_complex32) if include_complex else []
    )


def get_all_math_dtypes(device: str) -> list:
    """Dtypes that a kind of device computes in; those of 16 bits not on the CPU."""
    half = str(device).startswith("cuda")
    floating = get_all_fp_dtypes(include_half=half, include_bfloat16=False)
    return get_all_int_dtypes() + floating + get_all_complex_dtypes()


def highest_precision_float(device):
    """The dtype of most digits on a kind of device."""
    return taeda.float32 if taeda.device(device).type == "mps" else taeda.float64


def highest_precision_complex(device):
    """The complex dtype of most digits on a kind of device."""
    return taeda.complex64 if taeda.device(device).type == "mps" else taeda.complex128


# By kind of device: what tests with random dtypes choose from.
float_to_corresponding_complex_type_map = {
    taeda.float16: taeda.complex32,
    taeda.float32: taeda.complex64,
    taeda.float64: taeda.complex128,
}
