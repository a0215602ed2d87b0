"""Pointwise functions outside the range that the vector loops are made for."""

from __future__ import annotations

import math

import pytest
import taeda
from tolerance import rounding

FAR = [1e13, -3e15, 2.0**41, 1e20, 1e38, 0.5, -2.0]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("count", [1, 300])
def test_trigonometry_of_huge_arguments(name: str, count: int) -> None:
    x = taeda.tensor(FAR * count, dtype=taeda.float64)
    want = [getattr(math, name)(v) for v in FAR] * count
    got = getattr(taeda, name)(x)
    assert (got - taeda.tensor(want, dtype=taeda.float64)).abs().max() < rounding(
        "float64", 4
    )
    single = getattr(taeda, name)(x.to(taeda.float32))
    exact = [getattr(math, name)(v) for v in x.to(taeda.float32).tolist()]
    assert (single.to(taeda.float64) - taeda.tensor(exact)).abs().max() < rounding(
        "float32", 4
    )


def test_the_derivative_of_sin_reaches_as_far() -> None:
    x = taeda.tensor(FAR, dtype=taeda.float64, requires_grad=True)
    taeda.sin(x).sum().backward()
    assert x.grad.tolist() == pytest.approx(
        [math.cos(v) for v in FAR], abs=rounding("float64", 4)
    )


def test_sixteen_bit_linspace_steps_in_its_own_type() -> None:
    import torch

    for name in ("bfloat16", "float16", "float32", "float64"):
        got = taeda.linspace(-3.3, 7.7, 301, dtype=getattr(taeda, name)).tolist()
        want = torch.linspace(-3.3, 7.7, 301, dtype=getattr(torch, name)).tolist()
        assert got == want


def test_the_angle_of_atanh_at_an_infinity_and_nan() -> None:
    z = taeda.tensor([complex(math.inf, math.nan), complex(math.nan, math.inf)])
    unknown, known = taeda.atanh(z).tolist()
    assert unknown.real == 0 and math.isnan(unknown.imag)
    assert known == pytest.approx(complex(0, math.pi / 2))


def test_complex_powers_have_the_digits_of_their_type() -> None:
    taeda.manual_seed(0)
    z, w = (taeda.randn(200, dtype=taeda.complex64) * 4 for _ in "ab")
    exact = z.to(taeda.complex128) ** w.to(taeda.complex128)
    assert ((z**w - exact).abs() <= exact.abs() * 1.2e-7).all()


def test_angles_of_an_eighth_are_the_nearest_floats() -> None:
    y = taeda.tensor([1.0, 1.0, math.inf])
    x = taeda.tensor([1.0, -1.0, math.inf])
    nearest = taeda.tensor([math.pi / 4, 3 * math.pi / 4, math.pi / 4])
    assert taeda.atan2(y, x).tolist() == nearest.tolist()


def test_a_complex_number_adds_its_kind_and_no_width() -> None:
    wide = taeda.tensor(1j, dtype=taeda.complex128)
    for real, want in (
        (taeda.float16, taeda.complex32),
        (taeda.bfloat16, taeda.complex64),
        (taeda.float32, taeda.complex64),
        (taeda.float64, taeda.complex128),
        (taeda.int64, taeda.complex64),
    ):
        row = taeda.ones(2, dtype=real)
        assert taeda.result_type(row, 2j) == want
        if real.is_floating_point:
            assert taeda.result_type(row, wide) == want
        product = row * 2j
        assert product.dtype == want
        assert product.to(taeda.complex64).tolist() == [2j, 2j]


def test_softsign_in_sixteen_bits_has_all_its_digits() -> None:
    x = taeda.linspace(-9, 9, 101, dtype=taeda.bfloat16).requires_grad_()
    y = taeda.nn.functional.softsign(x)
    (slope,) = taeda.autograd.grad(y.sum(), x)
    size = 1 + x.detach().double().abs()
    assert ((slope * size**2 - 1).abs() <= 2**-8).all()
    assert ((y.double() * size - x.double()).abs() <= 2**-8 * x.abs()).all()


def test_any_byte_but_zero_is_true() -> None:
    bytes_ = taeda.tensor([190, 0, 1, 2, 0], dtype=taeda.uint8)
    odd, plain = bytes_.view(taeda.bool), bytes_ != 0
    other = taeda.tensor([True, True, False, True, False])
    for each in (
        lambda b: ~b,
        lambda b: b & other,
        lambda b: b ^ other,
        lambda b: b == other,
        lambda b: b.sum(),
        lambda b: b.repeat(100).sum(),
        lambda b: b.float(),
        lambda b: b.cumsum(0),
        lambda b: b.nonzero(),
        lambda b: taeda.where(b, 1, 2),
        lambda b: taeda.arange(5)[b],
        lambda b: taeda.arange(5).masked_fill(b, -1),
        lambda b: taeda.arange(5).masked_scatter(b, taeda.arange(9, 14)),
    ):
        assert each(odd).tolist() == each(plain).tolist()
    assert odd.tolist() == plain.tolist()


def test_integers_wrap_around() -> None:
    most, least = 2**63 - 1, -(2**63)
    x = taeda.tensor([most, least])
    assert (x + x).tolist() == [-2, 0]
    assert (-x).tolist() == [-most, least]
    assert (x * 2).tolist() == [-2, 0]
    assert (x - x.flip(0)).tolist() == [-1, 1]
    assert x.sum().item() == -1 and taeda.stack([x, x]).sum(0).tolist() == [-2, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nextafter_of_all_sixteen_bit_numbers(dtype: str) -> None:
    """Their own neighbours, not float's rounded back to where they were."""
    import torch

    def neighbours(lib, other: float):
        kind = getattr(lib, dtype)
        bits = lib.arange(-(2**15), 2**15, dtype=lib.int32).to(lib.int16)
        found = lib.nextafter(bits.view(kind), lib.tensor(other, dtype=kind))
        return lib.where(found.isnan(), 0, found.view(lib.int16)).numpy()

    for other in (0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan):
        got, want = (neighbours(lib, other) for lib in (taeda, torch))
        assert (got == want).all(), other


def test_nextafter_takes_the_spacing_of_the_result() -> None:
    one, two = taeda.ones(2, dtype=taeda.float16), taeda.full((2,), 2.0)
    assert taeda.nextafter(one, two).tolist() == [1 + 2**-23] * 2
    assert taeda.nextafter(one, two[0]).tolist() == [1 + 2**-10] * 2
    assert taeda.nextafter(one, two.bfloat16()).dtype == taeda.float32


LERPS = {
    "narrower": ("float64", "float32", 0.5),
    "wider": ("float16", "float64", 0.5),
    "complex": ("complex128", "float32", 0.25),
    "of real numbers": ("float32", "complex64", 0.5j),
    "whole": ("float32", "int64", 2),
}


@pytest.mark.parametrize("name", LERPS)
def test_a_weight_of_no_dims_is_promoted(name: str) -> None:
    import torch

    dtype, weight_dtype, number = LERPS[name]

    def program(lib):
        start = lib.ones(3, dtype=getattr(lib, dtype))
        end = lib.tensor([0.0, 2.0, 3.0]).to(start.dtype)
        return lib.lerp(
            start, end, lib.tensor(number, dtype=getattr(lib, weight_dtype))
        )

    got, want = program(taeda), program(torch)
    assert str(got.dtype)[6:] == str(want.dtype)[6:]
    assert got.tolist() == want.tolist()


def test_gradients_of_a_weight_of_another_dtype() -> None:
    """PyTorch has none where one of the two is complex."""
    start = taeda.tensor([1.0, 2.0], dtype=taeda.float64, requires_grad=True)
    end = taeda.tensor([0.5, -1.0], dtype=taeda.float64, requires_grad=True)
    turn = taeda.tensor(0.5j, dtype=taeda.complex128, requires_grad=True)
    assert taeda.autograd.gradcheck(taeda.lerp, (start, end, turn))
    weight = taeda.tensor(0.25, requires_grad=True)
    slopes = taeda.autograd.grad(taeda.lerp(start, end, weight).sum(), (start, weight))
    assert [g.tolist() for g in slopes] == [[0.75, 0.75], -3.5]
    assert slopes[1].dtype == taeda.float32


def test_a_weight_with_dims_is_not_promoted() -> None:
    x = taeda.ones(2, dtype=taeda.float64)
    with pytest.raises(RuntimeError, match="expected dtype Double for `weight`"):
        taeda.lerp(x, x, taeda.ones(2))
