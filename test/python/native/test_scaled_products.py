"""`_scaled_mm` and `nn.functional.scaled_mm` of float8, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import torch

F8 = ("float8_e4m3fn", "float8_e5m2")
RESULTS = ("float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", None)


def sides(lib, first: str = F8[0], second: str = F8[0]):
    """Numbers that both kinds of float8 have; the second matrix lies by columns."""
    a = (lib.arange(6 * 16).reshape(6, 16) * 5 % 13 - 6).float() / 4
    b = (lib.arange(8 * 16).reshape(8, 16) * 7 % 11 - 5).float() / 2
    return a.to(getattr(lib, first)), b.to(getattr(lib, second)).t()


def scale(lib, *numbers: float):
    return lib.tensor(numbers if len(numbers) > 1 else numbers[0])


def agree(call, rel: float = 1e-6, cut_off: np.ndarray | None = None) -> None:
    """Both give the same; `cut_off` stands where PyTorch overflows, as on some CPUs."""
    ours, theirs = call(taeda), call(torch)
    assert str(ours.dtype)[6:] == str(theirs.dtype)[6:]
    assert ours.shape == theirs.shape
    got, want = ours.float().numpy(), theirs.float().numpy()
    if cut_off is not None:
        want = np.where(np.isfinite(want), want, cut_off)
    np.testing.assert_allclose(got, want, rtol=rel, atol=rel)


@pytest.mark.parametrize("dtype", RESULTS)
def test_one_scale_for_each_side(dtype):
    def product(lib):
        a, b = sides(lib)
        kind = dtype and getattr(lib, dtype)
        return lib._scaled_mm(a, b, scale(lib, 0.5), scale(lib, 0.25), out_dtype=kind)

    agree(product)


@pytest.mark.parametrize("first", F8)
@pytest.mark.parametrize("second", F8)
def test_both_kinds_of_float8(first, second):
    def product(lib):
        a, b = sides(lib, first, second)
        one = scale(lib, 1.0)
        return lib._scaled_mm(a, b, one, one[None], out_dtype=lib.float32)

    agree(product)


def test_scales_of_rows():
    def product(lib):
        a, b = sides(lib)
        rows, columns = lib.arange(1, 7) / 4, lib.arange(1, 9) / 8
        scales = rows[:, None], columns[None]
        return lib._scaled_mm(a, b, *scales, out_dtype=lib.float32)

    agree(product)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_bias_is_added_before_rounding(dtype):
    def product(lib):
        (a, b), kind = sides(lib), getattr(lib, dtype)
        bias = (lib.arange(8) / 8 - 0.5).to(lib.bfloat16)
        one = scale(lib, 1.0)
        return lib._scaled_mm(a, b, one, one, bias=bias, out_dtype=kind)

    agree(product)


@pytest.mark.parametrize("dtype", RESULTS)
def test_results_of_float8_are_scaled_and_cut_off(dtype):
    def product(lib):
        (a, b), kind = sides(lib), dtype and getattr(lib, dtype)
        scales = scale(lib, 64.0), scale(lib, 1.0)
        given = {"scale_result": scale(lib, 2.0), "out_dtype": kind}
        return lib._scaled_mm(a, b, *scales, **given)

    a, b = sides(taeda)
    largest = taeda.finfo(getattr(taeda, dtype or F8[0])).max
    agree(product, cut_off=np.sign((a.float() @ b.float()).numpy()) * largest)


def test_without_elements_and_out():
    def product(lib):
        a, b = sides(lib)
        one = scale(lib, 1.0)
        out = lib.empty(0)
        same = lib._scaled_mm(a, b, one, one, out_dtype=lib.float32, out=out)
        assert same is out
        return out

    agree(product)
    # PyTorch leaves the memory as it was on some CPUs.
    (a, b), one = sides(taeda), scale(taeda, 1.0)
    empty = taeda._scaled_mm(a[:, :0], b[:0], one, one, out_dtype=taeda.float32)
    assert taeda.equal(empty, taeda.zeros(6, 8))


def test_by_its_public_name():
    def product(lib):
        a, b = sides(lib)
        functional = lib.nn.functional
        kind = functional.ScalingType
        rows, columns = lib.ones(6, 1) / 2, lib.ones(1, 8) / 4
        by_rows = functional.scaled_mm(a, b, rows, kind.RowWise, columns, kind.RowWise)
        one = scale(lib, 2.0)
        by_one = functional.scaled_mm(a, b, one, kind.TensorWise, one, kind.TensorWise)
        return lib.cat([by_rows, by_one])

    agree(product)


def test_what_does_not_fit_is_refused():
    a, b = sides(taeda)
    one = scale(taeda, 1.0)
    with pytest.raises(ValueError, match=r"scaling configuration.*\[6, 1\]"):
        taeda._scaled_mm(a, b, taeda.ones(5, 1), taeda.ones(1, 8))
    with pytest.raises(ValueError, match="matrices of float8.*float32"):
        taeda._scaled_mm(a.float(), b.float(), one, one)
    with pytest.raises(ValueError, match="scales of float32"):
        taeda._scaled_mm(a, b, one.double(), one)
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(\[6, 15\]"):
        taeda._scaled_mm(a[:, :15], b, one, one)
    with pytest.raises(RuntimeError, match="mat1 must be a matrix"):
        taeda._scaled_mm(a[0], b, one, one)
    with pytest.raises(RuntimeError, match="Bias must be size 8 but got 7"):
        taeda._scaled_mm(a, b, one, one, bias=taeda.ones(7))
    functional = taeda.nn.functional
    block, whole = functional.ScalingType.BlockWise1x32, functional.ScalingType.RowWise
    with pytest.raises(NotImplementedError, match="_scaled_mm_v2: .* recipe 0 or 1"):
        functional.scaled_mm(a, b, one, block, one, whole)
