"""Matrix products by cuBLASLt: what it is given, and what it leaves to our kernels."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import taeda
from device_kernels import same
from device_operators import agree
from taeda.nn import functional

Tensor = taeda.Tensor
REAL = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)
DTYPES = (*REAL, taeda.complex64, taeda.complex128)


def made(*sizes: int, dtype: taeda.dtype = taeda.float32) -> Tensor:
    return taeda.randn(*sizes, dtype=taeda.complex128).mul(3).to(dtype)


@pytest.fixture(autouse=True)
def seeded() -> None:
    taeda.manual_seed(5)


def run(text: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", text]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True)


# How a matrix of these sizes lies: by rows, by columns, in part of a larger one, with
# gaps in its rows (which is copied), with its rows the other way round.
LIES: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda t: t,
    "columns": lambda t: t.t().contiguous().t(),
    "part": lambda t: taeda.cat([t, t], 1)[:, : t.shape[1]],
    "gaps": lambda t: taeda.stack([t, t], 2)[:, :, 0],
    "expanded": lambda t: t[:1].expand_as(t),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sides_lie_as_they_like(dtype: taeda.dtype) -> None:
    a, b = made(5, 7, dtype=dtype), made(7, 6, dtype=dtype)
    for first in LIES.values():
        for second in LIES.values():
            # The copy to the device keeps dense strides alone.
            left, right = first(a.cuda()), second(b.cuda())
            want = first(a) @ second(b)
            assert agree(taeda.mm(left, right), want)
            assert agree(left @ right, want)
            assert agree(right.t() @ left.t(), want.t())


@pytest.mark.parametrize("dtype", [taeda.complex64, taeda.complex128], ids=str)
def test_conjugates_are_read_as_they_lie(dtype: taeda.dtype) -> None:
    a, b = made(4, 4, dtype=dtype), made(4, 4, dtype=dtype)
    for left in (a, a.conj(), a.mH, a.mT):
        for right in (b, b.conj(), b.mH, b.mT):
            same(taeda.mm, left, right)
    same(taeda.mv, a.mH, b[0].conj())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batches(dtype: taeda.dtype) -> None:
    a, b = made(3, 4, 5, dtype=dtype), made(3, 5, 2, dtype=dtype)
    same(taeda.bmm, a, b)
    same(lambda p, q: taeda.bmm(p, q.expand(3, 5, 2)), a, b[:1])
    same(lambda p, q: taeda.bmm(p[::2], q[1:]), a, b)
    same(lambda p, q: taeda.bmm(p.mT, q.mT), b, a)
    same(lambda p, q: taeda.bmm(p.transpose(0, 1), q.expand(4, 5, 2)), a, b[:1])
    wide, tall = made(2, 3, 4, 5, dtype=dtype), made(2, 3, 5, 2, dtype=dtype)
    same(taeda.matmul, wide, tall)
    same(lambda p, q: p.transpose(1, 2) @ q, made(2, 4, 3, 5, dtype=dtype), tall)
    same(lambda p, q: p.mT @ q.mT, tall, wide)
    same(taeda.matmul, wide, tall[:1, :1])
    same(taeda.matmul, wide, tall[0, 0])
    same(taeda.matmul, wide, tall[0, 0, :, 0])
    same(taeda.matmul, wide[0, 0, 0], tall)
    same(taeda.mv, wide[0, 0], tall[0, 0, :, 1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_with_what_is_added(dtype: taeda.dtype) -> None:
    a, b, whole = (made(*s, dtype=dtype) for s in ((5, 3), (3, 4), (5, 4)))
    for added in (whole, whole[0], whole[:1], whole[:, :1], whole[0, 0], whole[0, ::1]):
        same(taeda.addmm, added, a, b)
        for beta, alpha in ((0, 1), (2, 1), (1, 3), (0.5, -2)):
            scaled = functools.partial(taeda.addmm, beta=beta, alpha=alpha)
            same(scaled, added, a, b)
    same(taeda.addmm, whole.t().contiguous().t(), a, b)
    same(taeda.addmm, taeda.full_like(whole, float("nan")).mul_(0), a, b)
    batch = made(2, 5, 4, dtype=dtype)
    left, right = made(2, 5, 3, dtype=dtype), made(2, 3, 4, dtype=dtype)
    for added in (batch, batch[0], batch[:, :1], batch[0, 0], batch.mT.contiguous().mT):
        same(functools.partial(taeda.baddbmm, beta=2, alpha=3), added, left, right)
    out = whole.cuda()
    assert out.addmm_(a.cuda(), b.cuda()) is out
    assert agree(out, whole.addmm(a, b))


def test_what_is_not_read_may_be_nan() -> None:
    a, b, nan = made(5, 3), made(3, 4), taeda.full((5, 4), float("nan"))
    same(lambda s, p, q: taeda.addmm(s, p, q, beta=0), nan, a, b)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_linear_and_its_gradients(dtype: taeda.dtype) -> None:
    x, weight, bias = (made(*s, dtype=dtype) for s in ((2, 3, 5), (4, 5), (4,)))
    same(functional.linear, x, weight, bias)
    same(functional.linear, x, weight)
    same(functional.linear, x[0, 0], weight, bias)
    same(functional.linear, x.transpose(0, 1), weight, bias)
    same(functional.linear, x, weight[:, :1].expand(4, 5), bias)
    same(functional.linear, x, weight, taeda.cat([bias, bias])[::2])

    def gradients(*tensors: Tensor) -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in tensors]
        functional.linear(*leaves).square().sum().backward()
        return tuple(leaf.grad for leaf in leaves)

    same(gradients, x, weight, bias)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_activations_at_the_end_of_a_product(dtype: taeda.dtype) -> None:
    bias, a, b = (made(*s, dtype=dtype) for s in ((4,), (5, 3), (3, 4)))
    for added in (bias, bias.expand(5, 4).contiguous()):
        same(taeda._addmm_activation, added, a, b)
        got = taeda._addmm_activation(added.cuda(), a.cuda(), b.cuda(), use_gelu=True)
        wide = taeda.addmm(*(t.double() for t in (added, a, b)))
        want = functional.gelu(wide, approximate="tanh").to(dtype)
        assert agree(got, want) or dtype == taeda.float16
        close = {taeda.float16: 4e-3, taeda.bfloat16: 3e-2}.get(dtype, 1e-4)
        assert (got.cpu() - want).abs().max() <= close * want.abs().max()
    leaf = a.cuda().requires_grad_()
    taeda._addmm_activation(bias.cuda(), leaf, b.cuda()).sum().backward()
    mine = a.clone().requires_grad_()
    taeda._addmm_activation(bias, mine, b).sum().backward()
    assert agree(leaf.grad, mine.grad)


def test_products_of_bytes() -> None:
    def small(*sizes: int) -> Tensor:
        return taeda.randint(-128, 128, sizes).to(taeda.int8)

    for rows, inner, columns in ((17, 8, 8), (3, 12, 4), (5, 7, 3), (4, 6, 8)):
        same(taeda._int_mm, small(rows, inner), small(inner, columns))
        same(taeda._int_mm, small(rows, inner), small(columns, inner).t())


FLOAT8 = (taeda.float8_e4m3fn, taeda.float8_e5m2)


@pytest.mark.parametrize("second", FLOAT8, ids=str)
@pytest.mark.parametrize("first", FLOAT8, ids=str)
def test_products_of_float8(first: taeda.dtype, second: taeda.dtype) -> None:
    one, half = taeda.tensor(1.0), taeda.tensor(0.5)
    # The library has sizes in sixteens; two sides of e5m2 it does not have.
    for rows, inner, columns in ((32, 16, 48), (5, 7, 3)):
        a, b = made(rows, inner).to(first), made(columns, inner).to(second).t()
        scales = taeda.rand(rows, 1), taeda.rand(1, columns)
        bias = taeda.randn(columns).bfloat16()
        for how in (
            {"out_dtype": taeda.float32},
            {"out_dtype": taeda.bfloat16, "bias": bias},
            {"out_dtype": taeda.float16, "use_fast_accum": True},
            {"out_dtype": taeda.float32, "bias": bias},
            {"out_dtype": taeda.float8_e4m3fn, "scale_result": half},
        ):
            for pair in ((half, one), (half, half[None]), scales):
                there = {
                    k: v.cuda() if k in ("bias", "scale_result") else v
                    for k, v in how.items()
                }
                got = taeda._scaled_mm(
                    a.cuda(), b.cuda(), *(s.cuda() for s in pair), **there
                )
                want = taeda._scaled_mm(a, b, *pair, **how)
                assert got.dtype == want.dtype and got.is_cuda
                close = {1: 0.13, 2: 1e-2, 4: 1e-5}[want.element_size()]
                gap = (got.cpu().float() - want.float()).abs().max()
                assert gap <= close * want.float().abs().max()


def test_scales_are_read_when_the_product_runs() -> None:
    a, b = made(16, 16).to(FLOAT8[0]), made(16, 16).to(FLOAT8[0]).t()
    one, factor = taeda.tensor(1.0).cuda(), taeda.tensor(1.0).cuda()
    for number in (2.0, 3.0):
        factor.fill_(number)
        got = taeda._scaled_mm(a.cuda(), b.cuda(), factor, one, out_dtype=taeda.float32)
        assert agree(got, a.float() @ b.float() * number)


def test_tf32_is_what_the_switches_say() -> None:
    a, b = taeda.randn(16, 16).cuda(), taeda.randn(16, 16).cuda()
    exact = a.double() @ b.double()

    def error() -> float:
        return float(((a @ b).double() - exact).abs().max())

    matmul = taeda.backends.cuda.matmul
    try:
        assert error() < 1e-5
        matmul.allow_tf32 = True
        assert 1e-4 < error() < 1e-1
        taeda.set_float32_matmul_precision("highest")
        assert error() < 1e-5
        taeda.backends.fp32_precision = "tf32"
        matmul.fp32_precision = "none"
        taeda.backends.cuda.matmul.fp32_precision = "tf32"
        assert error() > 1e-4
    finally:
        taeda.backends.fp32_precision = "none"
        taeda.set_float32_matmul_precision("highest")
    assert error() < 1e-5


def test_long_sums_have_workspace_and_many_shapes_are_kept() -> None:
    x = made(3, 200)
    same(lambda p: p @ p.t(), x)
    there = x.cuda()
    for turn in range(1100):  # more than are kept
        width, rows = 1 + turn % 157, 1 + turn % 3
        first = turn % 5
        left, right = (slice(first, first + width), slice(0, width))
        product = there[:, left] @ there[:rows, right].t()
        if turn % 50 == 0:
            assert agree(product, x[:, left] @ x[:rows, right].t())


def test_sides_need_no_alignment() -> None:
    for dtype in (taeda.float32, taeda.bfloat16):
        a, b = made(100, dtype=dtype), made(100, dtype=dtype)
        for first in range(4):
            for second in range(4):
                same(
                    lambda p, q, i=first, j=second: (
                        p[i : i + 15].view(3, 5) @ q[j : j + 10].view(5, 2)
                    ),
                    a,
                    b,
                )


def test_products_run_on_the_current_stream() -> None:
    stream = taeda.cuda.Stream()
    a, b = made(6, 70, dtype=taeda.float64), made(70, 6, dtype=taeda.float64)
    with taeda.cuda.stream(stream):
        x, y = a.cuda(), b.cuda()
        for _ in range(5):
            x = (x @ y) @ b.cuda().t() * 1e-2
        got = x.cpu()
    want = a
    for _ in range(5):
        want = (want @ b) @ b.t() * 1e-2
    assert agree(got, want)


def test_other_dtypes_and_empty_ones_are_ours() -> None:
    for dtype in (taeda.int64, taeda.int8):
        same(taeda.mm, taeda.ones(3, 4, dtype=dtype), taeda.ones(4, 2, dtype=dtype))
    for sizes in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        n, k, m = sizes
        same(taeda.mm, taeda.ones(n, k), taeda.ones(k, m))
        same(functional.linear, taeda.ones(n, k), taeda.ones(m, k), taeda.ones(m))
        same(taeda.addmm, taeda.ones(m), taeda.ones(n, k), taeda.ones(k, m))


def test_errors_are_those_of_the_cpu() -> None:
    x, y = taeda.ones(3, 4), taeda.ones(3, 4)
    for call in (
        lambda p, q: p @ q,
        lambda p, q: taeda.mm(p, q),
        lambda p, q: taeda.mv(p, q[0, :2]),
        lambda p, q: taeda.addmm(q, p, q),
        lambda p, q: taeda.addmm(q[:2], p, q.t()),
        lambda p, q: functional.linear(p, q[:, :2]),
        lambda p, q: p @ q.t().double(),
    ):
        with pytest.raises(RuntimeError) as here:
            call(x, y)
        with pytest.raises(RuntimeError) as there:
            call(x.cuda(), y.cuda())
        assert str(there.value) == str(here.value)
    with pytest.raises(RuntimeError, match="same device"):
        taeda.mm(x.cuda(), y.t())


LOST = """
import sys, warnings
import taeda
warnings.simplefilter("always")
x = taeda.arange(12.0).view(3, 4).cuda()
for _ in range(3):
    product = x @ x.t()
layer = taeda.nn.functional.linear(x, x, taeda.ones(3).cuda())
assert taeda.equal(product.cpu(), x.cpu() @ x.cpu().t())
assert taeda.equal(layer.cpu(), x.cpu() @ x.cpu().t() + 1)
print("right")
"""


def test_without_the_library_our_kernels_run_and_one_line_says_so() -> None:
    done = run(LOST, TAEDA_CUDA_CUBLASLT="/nonexistent/libcublasLt.so.12")
    assert done.stdout == "right\n", done.stderr
    assert done.stderr.count("libcublasLt.so was not found") == 1
    assert "install the package nvidia-cublas" in done.stderr
    old = run(LOST, TAEDA_CUDA_CUBLASLT="libm.so.6")
    assert old.stdout == "right\n" and "cuBLASLt is too old" in old.stderr
    assert run(LOST).stderr == ""
