"""Products with `out_dtype`: sums of 16-bit floats that stay in float32."""

from __future__ import annotations

import pytest
import taeda
from taeda import float32

NARROW = [taeda.bfloat16, taeda.float16]


def factors(batch: tuple[int, ...], dtype: taeda.dtype) -> list[taeda.Tensor]:
    taeda.manual_seed(0)
    return [taeda.randn(*batch, *s).to(dtype) for s in ((3, 64), (64, 5), (3, 5))]


def exact(a: taeda.Tensor, b: taeda.Tensor) -> taeda.Tensor:
    return a.double() @ b.double()


@pytest.mark.parametrize("dtype", NARROW)
def test_products_are_not_rounded_to_the_factors_dtype(dtype: taeda.dtype) -> None:
    for batch, name in (((), "mm"), ((2,), "bmm")):
        a, b, _ = factors(batch, dtype)
        got = getattr(taeda, name)(a, b, out_dtype=float32)
        assert got.dtype is float32
        assert taeda.allclose(got.double(), exact(a, b), rtol=1e-5, atol=1e-5)
        assert getattr(taeda, name)(a, b, dtype).equal(getattr(taeda, name)(a, b))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("wide", [False, True])
def test_summands_have_either_dtype(dtype: taeda.dtype, wide: bool) -> None:
    for batch, name in (((), "addmm"), ((2,), "baddbmm")):
        a, b, c = factors(batch, dtype)
        c = c.float() if wide else c
        op = getattr(taeda, name)
        got = op(c, a, b, out_dtype=float32, beta=2, alpha=0.5)
        want = 2 * c.double() + 0.5 * exact(a, b)
        assert got.dtype is float32
        assert taeda.allclose(got.double(), want, rtol=1e-5, atol=1e-5)


def test_gradients_have_the_dtype_of_their_factor() -> None:
    a, b, c = (t.requires_grad_() for t in factors((), taeda.bfloat16))
    taeda.addmm(c, a, b, out_dtype=float32).sum().backward()
    assert {t.grad.dtype for t in (a, b, c)} == {taeda.bfloat16}
    assert a.grad.equal(b.detach().float().sum(1).bfloat16().expand(3, 64))


def test_results_that_are_given() -> None:
    a, b, c = factors((), taeda.float16)
    out = taeda.empty(3, 5)
    assert taeda.mm(a, b, out_dtype=float32, out=out) is out
    assert out.equal(taeda.mm(a, b, out_dtype=float32))
    with pytest.raises(RuntimeError, match="mm"):
        taeda.mm(a, b, out_dtype=float32, out=c)


def test_graphs_and_meta_tensors() -> None:
    a, b, _ = factors((), taeda.bfloat16)
    meta = taeda.mm(a.to("meta"), b.to("meta"), out_dtype=float32)
    assert meta.dtype is float32 and meta.shape == (3, 5)
    compiled = taeda.compile(lambda a, b: taeda.mm(a, b, out_dtype=float32) + 1)
    assert taeda.allclose(compiled(a, b).double(), exact(a, b) + 1, atol=1e-4)


def test_other_dtypes_are_refused() -> None:
    a, b, c = factors((), taeda.bfloat16)
    for bad in (taeda.float16, taeda.float64, taeda.int32):
        with pytest.raises(RuntimeError, match="mm: out_dtype must be"):
            taeda.mm(a, b, out_dtype=bad)
    with pytest.raises(RuntimeError, match="bmm: out_dtype must be"):
        taeda.bmm(a[None].float(), b[None].float(), out_dtype=taeda.bfloat16)
    with pytest.raises(RuntimeError, match="mm: .* same dtype"):
        taeda.mm(a, b.float(), out_dtype=float32)
    with pytest.raises(RuntimeError, match="addmm: self must have"):
        taeda.addmm(c.double(), a, b, out_dtype=float32)
