"""`_int_mm` and `_addmm_activation`, against PyTorch's."""

from __future__ import annotations

import pytest
import taeda
import torch

LEFT = [[-128, 127, 3], [4, 5, -6]]
RIGHT = [[-128, 1, 2, 3], [127, 5, 6, -7], [8, 9, -10, 11]]


@pytest.mark.parametrize("left", ["int8", "uint8"])
def test_bytes_are_summed_in_32_bits(left):
    def product(lib):
        a = lib.tensor(LEFT).to(getattr(lib, left))
        b = lib.tensor(RIGHT, dtype=lib.int8)
        out = lib.empty(2, 4, dtype=lib.int32)
        assert lib._int_mm(a, b, out=out) is out
        strided = lib._int_mm(a.t().contiguous().t(), b[:, ::2])
        return [lib._int_mm(a, b), out, strided, lib._int_mm(a[:, :0], b[:0])]

    ours, theirs = product(taeda), product(torch)
    assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]
    assert {t.dtype for t in ours} == {taeda.int32}


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("float32", "int8", "self dtype to be int8 or uint8"),
        ("int8", "uint8", "mat2 dtype to be int8"),
        ("int8", "int32", "mat2 dtype to be int8"),
    ],
)
def test_other_dtypes_are_refused(left, right, message):
    a = taeda.ones(2, 3, dtype=getattr(taeda, left))
    b = taeda.ones(3, 2, dtype=getattr(taeda, right))
    with pytest.raises(RuntimeError, match=message):
        taeda._int_mm(a, b)


def test_shapes_and_results_are_checked():
    a = taeda.ones(2, 3, dtype=taeda.int8)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        taeda._int_mm(a, a)
    with pytest.raises(RuntimeError, match="must be a matrix"):
        taeda._int_mm(a[0], a)
    with pytest.raises(RuntimeError, match="dtype int"):
        taeda._int_mm(a, a.t(), out=taeda.empty(2, 2, dtype=taeda.int64))


@pytest.mark.parametrize("use_gelu", [False, True])
def test_product_with_an_activation(use_gelu):
    def product(lib):
        a, b = lib.tensor(LEFT) / 64, lib.tensor(RIGHT) / 64
        bias = lib.tensor([1.0, 2.0, -3.0, -4.0])
        options = {"beta": 2, "alpha": -1, "use_gelu": use_gelu}
        return lib._addmm_activation(bias, a, b, **options)

    assert product(taeda).numpy() == pytest.approx(product(torch).numpy(), rel=1e-5)
