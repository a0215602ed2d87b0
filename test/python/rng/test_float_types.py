"""Storage floats against PyTorch: every code, and 2^20 floats the other way."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

FORMATS = {
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Float8_e4m3fn": torch.float8_e4m3fn,
    "Float8_e5m2": torch.float8_e5m2,
    "Float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "Float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "Float8_e8m0fnu": torch.float8_e8m0fnu,
}


def code_dtype(name: str) -> np.dtype:
    return np.dtype(np.uint8 if name.startswith("Float8") else np.uint16)


def call(library, function: str, source: np.ndarray, dtype) -> np.ndarray:
    result = np.empty(source.size, dtype)
    getattr(library, function)(
        ctypes.c_void_p(source.ctypes.data),
        ctypes.c_void_p(result.ctypes.data),
        ctypes.c_int64(source.size),
    )
    return result


def interesting_floats() -> np.ndarray:
    """Every float with 11 top bits and 4 patterns below, and random bits."""
    top = np.arange(2**17, dtype=np.uint32) << 15
    tails = [0, 1, 0x3FFF, 0x4000, 0x4001, 0x7FFF]
    grid = np.concatenate([top | np.uint32(tail) for tail in tails])
    noise = np.random.default_rng(0).integers(0, 2**32, 2**20, dtype=np.uint32)
    return np.concatenate([grid, noise]).view(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("way", ["scalar", "bulk"])
def test_every_code_widens_as_torch(float_library, name, way):
    kind = code_dtype(name)
    codes = np.arange(256**kind.itemsize).astype(kind)
    got = call(float_library, f"{way}_widen_{name}", codes, np.float32)
    want = torch.from_numpy(codes).view(FORMATS[name]).float().numpy()
    assert np.array_equal(np.isnan(got), np.isnan(want))
    number = ~np.isnan(want)
    assert np.array_equal(got.view(np.uint32)[number], want.view(np.uint32)[number])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("way", ["scalar", "bulk"])
def test_floats_round_as_torch(float_library, name, way):
    kind = code_dtype(name)
    values = interesting_floats()
    got = call(float_library, f"{way}_narrow_{name}", values, kind)
    want = torch.from_numpy(values).to(FORMATS[name])
    same = got == want.view(getattr(torch, kind.name)).numpy()
    if name == "BFloat16":  # torch's NaN code differs between its own ISA levels
        nan = np.isnan(values)
        assert np.all(got[nan] == 0x7FC0)
        same |= nan
    worst = np.flatnonzero(~same)[:5]
    assert same.all(), [(float(values[i]).hex(), hex(got[i])) for i in worst]
