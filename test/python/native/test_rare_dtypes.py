"""Operators over wide unsigned integers and 8-bit floats, and wider `out=` tensors."""

from __future__ import annotations

import pytest
import taeda
import torch

WIDE = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
FIRST, SECOND = [1.0, 2.0, 3.0], [1.0, 4.0, 2.0]


def _pair(name: str) -> tuple[taeda.Tensor, taeda.Tensor]:
    dtype = getattr(taeda, name)
    return taeda.tensor(FIRST).to(dtype), taeda.tensor(SECOND).to(dtype)


@pytest.mark.parametrize("name", WIDE + FLOAT8)
def test_equality_products_and_choices(name: str) -> None:
    a, b = _pair(name)
    assert taeda.eq(a, b).tolist() == [True, False, False]
    assert taeda.ne(a, 2).tolist() == [True, False, True]
    product = a * b
    assert product.dtype == a.dtype and product.tolist() == [1, 8, 6]
    chosen = taeda.where(taeda.tensor([True, False, True]), a, b)
    assert chosen.dtype == a.dtype and chosen.tolist() == [1, 4, 3]
    assert taeda.isnan(a).tolist() == [False] * 3
    assert taeda.equal(a, a.clone())


@pytest.mark.parametrize("name", WIDE)
def test_the_largest_values_are_told_apart(name: str) -> None:
    dtype = getattr(taeda, name)
    top = 2 ** (8 * dtype.itemsize) - 1
    a = taeda.tensor([top, top, 1], dtype=dtype)
    assert (a == taeda.tensor([top, top - 1, 1], dtype=dtype)).tolist() == [
        True,
        False,
        True,
    ]
    assert (a == top).tolist() == [True, True, False]
    # Products keep their low bits, as PyTorch's do.
    theirs = torch.tensor([top, top, 1], dtype=getattr(torch, name))
    assert (a * a).tolist() == (theirs * theirs).tolist()
    assert taeda.isclose(a, a).all()
    small = taeda.tensor([1, 2], dtype=dtype)
    assert small.sum().dtype == taeda.int64 and small.sum().item() == 3


@pytest.mark.parametrize("name", WIDE + FLOAT8)
def test_what_few_need_is_refused(name: str) -> None:
    a, b = _pair(name)
    for op in ("add", "lt", "maximum", "logical_and"):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            getattr(taeda, op)(a, b)


def _same(call, out: str) -> None:
    results = []
    for lib in (taeda, torch):
        result = lib.zeros(2, dtype=getattr(lib, out))
        call(lib, result)
        results.append(result.tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("op", ["mul", "atan2", "hypot", "pow"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_a_wider_out_gets_values_of_the_operands_type(op: str, half: str) -> None:
    def call(lib, out):
        x = lib.tensor([0.1, 2.5], dtype=getattr(lib, half))
        getattr(lib, op)(x, x, out=out)

    _same(call, "float32")


def test_a_wider_out_gets_integers_that_wrapped() -> None:
    def power(lib, out):
        lib.pow(2, lib.tensor([17, 3], dtype=lib.uint8), out=out)

    _same(power, "int64")
    _same(power, "int16")


@pytest.mark.parametrize("op", ["sin", "exp", "sqrt", "tanh"])
def test_functions_of_halves_round_before_a_wider_out(op: str) -> None:
    def call(lib, out):
        x = lib.tensor([0.1, 2.5], dtype=lib.float16)
        getattr(lib, op)(x, out=out)

    _same(call, "float64")


def test_none_stands_for_an_empty_list() -> None:
    x = taeda.arange(6).reshape(2, 3)
    assert taeda.roll(x, 1, None).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert taeda.amax(x, None).item() == 5


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("name", ["float64", "complex128", "complex64", "float32"])
def test_complex_halves_meet_wider_operands(name: str) -> None:
    for lib in (taeda, torch):
        half = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex32)
        other = lib.tensor([2.0, -4.0], dtype=getattr(lib, name))
        for value in (half * other, other * half, half + other, other - half):
            assert value.dtype == lib.promote_types(lib.complex32, other.dtype)
        assert (half * other).tolist() == [2 + 4j, -2 + 4j]
        out = lib.mul(half, other, out=lib.empty_like(half))
        assert out.tolist() == [2 + 4j, -2 + 4j]


@pytest.mark.parametrize("name", WIDE)
def test_wide_integers_meet_floats(name: str) -> None:
    top = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 2**11}[name]
    for lib in (taeda, torch):
        x = lib.tensor([1, top], dtype=getattr(lib, name))
        y = lib.tensor([0.5, 2.0], dtype=lib.float64)
        assert (x + y).tolist() == [1.5, top + 2.0]
        assert (x * y).tolist() == [0.5, 2.0 * top]
