"""Short names of dtypes: `f32`."""

from __future__ import annotations

import taeda

__all__ = ["dtype_abbrs"]

dtype_abbrs = {
    taeda.bfloat16: "bf16",
    taeda.float64: "f64",
    taeda.float32: "f32",
    taeda.float16: "f16",
    taeda.complex32: "c32",
    taeda.complex64: "c64",
    taeda.complex128: "c128",
    taeda.bool: "b8",
    taeda.uint8: "u8",
    taeda.uint16: "u16",
    taeda.uint32: "u32",
    taeda.uint64: "u64",
    taeda.int8: "i8",
    taeda.int16: "i16",
    taeda.int32: "i32",
    taeda.int64: "i64",
    taeda.float8_e4m3fn: "f8e4m3fn",
    taeda.float8_e5m2: "f8e5m2",
    taeda.float8_e4m3fnuz: "f8e4m3fnuz",
    taeda.float8_e5m2fnuz: "f8e5m2fnuz",
    taeda.float8_e8m0fnu: "f8e8m0fnu",
}
