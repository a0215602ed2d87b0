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


DTYPES = ["float32", "float16", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_of_8_bits(dtype):
    def product(lib):
        kind = getattr(lib, dtype)
        x = (lib.arange(3 * 32).reshape(3, 32) % 7 - 3).to(kind)
        w = (lib.arange(16 * 32).reshape(16, 32) % 255 - 127).to(lib.int8)
        return lib._weight_int8pack_mm(x, w, (lib.arange(16) / 64 + 0.25).to(kind))

    ours, theirs = product(taeda), product(torch)
    assert str(ours.dtype)[6:] == dtype
    rel = 1e-2 if ours.element_size() == 2 else 1e-5
    assert ours.float().numpy() == pytest.approx(theirs.float().numpy(), rel=rel)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [16, 32, 48])
@pytest.mark.parametrize("group", [32, 64])
def test_weights_of_4_bits(dtype, rows, group):
    def product(lib):
        kind = getattr(lib, dtype)
        numbers = (lib.arange(rows * 64).reshape(rows, 64) * 7 % 16).to(lib.int32)
        packed = lib._convert_weight_to_int4pack_for_cpu(numbers, 2)
        assert packed.dtype is lib.uint8 and packed.shape == (rows, 32)
        x = (lib.arange(3 * 64).reshape(3, 64) % 5 - 2).to(kind)
        groups = lib.arange(64 // group * rows * 2).reshape(-1, rows, 2) % 4
        groups = (groups / 4 + 0.25).to(kind)
        return lib._weight_int4pack_mm_for_cpu(x, packed, group, groups)

    ours, theirs = (product(lib).float().numpy() for lib in (taeda, torch))
    assert ours == pytest.approx(
        theirs, rel=2e-2, abs=0.5 if dtype != "float32" else 1e-3
    )


def test_weights_that_do_not_fit_are_refused():
    x, w = taeda.ones(2, 32), taeda.ones(16, 32, dtype=taeda.int8)
    with pytest.raises(RuntimeError, match="of int8"):
        taeda._weight_int8pack_mm(x, w.int(), taeda.ones(16))
    with pytest.raises(RuntimeError, match="16 scales"):
        taeda._weight_int8pack_mm(x, w, taeda.ones(15))
    with pytest.raises(RuntimeError, match="float32, float16 or bfloat16"):
        taeda._weight_int8pack_mm(x.double(), w, taeda.ones(16).double())
    with pytest.raises(RuntimeError, match="matrix of int32"):
        taeda._convert_weight_to_int4pack_for_cpu(w, 2)
    packed = taeda._convert_weight_to_int4pack_for_cpu(w.int(), 2)
    with pytest.raises(RuntimeError, match="qGroupSize"):
        taeda._weight_int4pack_mm_for_cpu(x, packed, 16, taeda.ones(2, 16, 2))
    with pytest.raises(RuntimeError, match=r"\[1, 16, 2\]"):
        taeda._weight_int4pack_mm_for_cpu(x, packed, 32, taeda.ones(2, 16, 2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_sums_and_products_of_integers_wrap(dtype) -> None:
    told = []
    for library in (taeda, torch):
        kind = getattr(library, dtype)
        edge = library.iinfo(kind).max
        t = library.full((3,), edge, dtype=kind)
        at = library.tensor([0, 0, 1])
        told.append(t.scatter_add(0, at, t).tolist())
        told.append(t.cumsum(0, dtype=kind).tolist())
        told.append(t.cumprod(0, dtype=kind).tolist())
        told.append((-t - 1)._neg_view().resolve_neg().tolist())
        told.append(t.scatter_reduce(0, at, t, "prod").tolist())
        told.append(t.index_add(0, at, t).tolist())
        told.append(t.index_put((at,), t, accumulate=True).tolist())
    assert told[:7] == told[7:]
