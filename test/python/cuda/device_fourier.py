"""Fourier transforms by cuFFT: what it is given, and what it leaves to our kernel."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import taeda
from device_operators import agree
from taeda import fft

Tensor = taeda.Tensor
COMPLEX = (taeda.complex64, taeda.complex128)


@pytest.fixture(autouse=True)
def seeded() -> None:
    taeda.manual_seed(5)
    taeda.backends.cuda.cufft_plan_cache.clear()


def plans() -> int:
    return taeda.backends.cuda.cufft_plan_cache.size


def close(got: Tensor, want: Tensor) -> None:
    assert got.is_cuda and got.dtype == want.dtype and got.shape == want.shape
    few = {taeda.float16, taeda.complex32}
    within = 2e-2 if want.dtype in few else 1e-5
    kind = taeda.complex128 if want.is_complex() else taeda.float64
    there = got.cpu().to(kind)
    assert taeda.allclose(there, want.to(kind), rtol=within, atol=within * 10)


def check(call, x: Tensor, count: int = 1) -> None:
    """Both sides agree, by so many new plans."""
    before = plans()
    got = call(x.cuda())
    assert plans() - before == count
    close(got, call(x))


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_complex_transforms(dtype: taeda.dtype, norm: str) -> None:
    x = taeda.randn(3, 5, 6, dtype=dtype)
    check(lambda x: fft.fft(x, norm=norm), x)
    check(lambda x: fft.ifft(x, dim=1, norm=norm), x)
    check(lambda x: fft.fft2(x, norm=norm), x)
    # The same plan serves both directions.
    check(lambda x: fft.ifft2(x, norm=norm), x, 0)
    check(lambda x: fft.fftn(x, dim=(2, 0), norm=norm), x)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64], ids=str)
@pytest.mark.parametrize("last", [7, 8])
def test_real_transforms(dtype: taeda.dtype, last: int) -> None:
    x = taeda.randn(3, 4, last, dtype=dtype)
    half = fft.rfftn(x)
    for norm in ("backward", "ortho", "forward"):
        assert agree(fft.rfft(x.cuda(), norm=norm), fft.rfft(x, norm=norm))
    check(fft.rfft, x, 0)
    check(fft.rfft2, x)
    check(fft.rfftn, x)
    check(lambda x: fft.irfft(x, last), half)
    check(lambda x: fft.irfft2(x, (4, last)), half)
    check(lambda x: fft.irfftn(x, (3, 4, last)), half)
    check(lambda x: fft.hfft(x, last), half, 0)
    check(lambda x: fft.ihfft(x), x, 0)


def test_what_a_transform_uses_up_is_a_copy() -> None:
    half = fft.rfft2(taeda.randn(3, 4, 6)).cuda()
    kept = half.clone()
    close(fft.irfft2(half), fft.irfft2(kept.cpu()))
    assert taeda.equal(half.cpu(), kept.cpu())


def test_more_dims_than_the_library_takes_at_once() -> None:
    x = taeda.randn(2, 3, 2, 4, 3)
    check(lambda x: fft.fftn(x.to(taeda.complex64)), x, 2)
    check(fft.rfftn, x, 2)
    half = fft.rfftn(x)
    check(lambda x: fft.irfftn(x, (2, 3, 2, 4, 3)), half, 1)


def test_operands_lie_as_they_like() -> None:
    x = taeda.randn(6, 5, 4, dtype=taeda.complex64)
    check(fft.fft, x.permute(2, 0, 1))
    check(fft.fft2, x[::2, 1:, ::2])
    check(fft.fft, x.conj(), 1)
    check(fft.fft, x[:1].expand(3, 5, 4))


def test_a_transform_along_no_dim_is_a_copy() -> None:
    x = taeda.randn(3, dtype=taeda.complex64, device="cuda")
    y = taeda.ops.aten._fft_c2c(x, [], 0, True)
    assert taeda.equal(x, y) and y.data_ptr() != x.data_ptr()


def test_half_has_powers_of_two() -> None:
    x = taeda.randn(3, 8)
    want = fft.rfft(x.half().float())
    got = fft.rfft(x.half().cuda())
    assert got.dtype == taeda.complex32 and plans() == 1
    assert taeda.allclose(got.cpu().to(taeda.complex64), want, atol=2e-2)


def test_gradients() -> None:
    def loss(x: Tensor) -> Tensor:
        y = fft.irfft2(fft.rfft2(x) * 2, (4, 5))
        return (y * y.detach().cos()).sum() + fft.fft(x).abs().sum()

    here = taeda.randn(2, 4, 5, dtype=taeda.float64).requires_grad_()
    there = here.detach().cuda().requires_grad_()
    loss(here).backward()
    loss(there).backward()
    assert taeda.allclose(there.grad.cpu(), here.grad)


def test_stft_and_back() -> None:
    x, window = taeda.randn(2, 64), taeda.hann_window(16)
    spectrum = taeda.stft(x.cuda(), 16, window=window.cuda(), return_complex=True)
    want = taeda.stft(x, 16, window=window, return_complex=True)
    assert taeda.allclose(spectrum.cpu(), want, atol=1e-5)
    back = taeda.istft(spectrum, 16, window=window.cuda(), length=64)
    assert taeda.allclose(back.cpu(), x, atol=1e-5)


def test_plans_are_kept_up_to_a_limit() -> None:
    cache = taeda.backends.cuda.cufft_plan_cache
    assert cache.max_size == 4096 and cache[0].size == 0
    cache.max_size = 2
    try:
        for n in (4, 5, 6, 4):
            fft.fft(taeda.ones(n, device="cuda"))
        assert cache.size == 2
        cache.max_size = 1
        assert cache.size == 1
        cache.max_size = 0
        close(fft.fft(taeda.ones(4, device="cuda")), fft.fft(taeda.ones(4)))
        assert cache.size == 0
        with pytest.raises(RuntimeError, match="max_size"):
            cache.max_size = -1
        with pytest.raises(RuntimeError, match="read-only"):
            cache.size = 3
        with pytest.raises(RuntimeError, match="device index"):
            cache[9]
    finally:
        cache.max_size = 4096


def test_transforms_run_on_the_current_stream() -> None:
    x = taeda.randn(3, 32, device="cuda")
    stream = taeda.cuda.Stream()
    stream.wait_event(taeda.cuda.current_stream().record_event())
    with stream:
        y = fft.rfft(x)
    stream.synchronize()
    close(y, fft.rfft(x.cpu()))


LOST = """
import warnings
import taeda
warnings.simplefilter("always")
x = taeda.randn(3, 5)
for _ in range(2):
    got = taeda.fft.irfft2(taeda.fft.rfft2(x.cuda()), (3, 5))
print("right" if taeda.allclose(got.cpu(), x, atol=1e-5) else "wrong")
"""


def test_without_the_library_our_kernel_runs_and_one_line_says_so() -> None:
    environment = os.environ | {"TAEDA_CUDA_CUFFT": "/nonexistent/libcufft.so.11"}
    command = [sys.executable, "-c", LOST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr
    assert done.stderr.count("libcufft.so was not found") == 1
    assert "install the package nvidia-cufft" in done.stderr
