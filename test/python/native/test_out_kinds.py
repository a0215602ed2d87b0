"""Which dtypes of out= are refused, and which shapes are kept."""

from __future__ import annotations

import pytest
import taeda

X = taeda.arange(6.0).reshape(2, 3)
C = taeda.complex(X, X)
TO_REAL = ["irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn"]
TO_COMPLEX = ["fft", "ifft", "fft2", "ifftn", "rfft", "ihfft", "rfftn"]


@pytest.mark.parametrize("name", TO_REAL)
def test_real_transforms_refuse_what_is_not_floating(name):
    transform = getattr(taeda.fft, name)
    for dtype in (taeda.complex64, taeda.int64):
        with pytest.raises(RuntimeError, match="expects a floating point output"):
            transform(C, out=taeda.empty(0, dtype=dtype))
    out = taeda.empty(0, dtype=taeda.float64)
    assert taeda.equal(transform(C, out=out), transform(C).double())


@pytest.mark.parametrize("name", TO_COMPLEX)
def test_complex_transforms_refuse_real_tensors(name):
    given = X if name.startswith(("r", "ih")) else C
    with pytest.raises(RuntimeError, match="expects a complex output .* Float"):
        getattr(taeda.fft, name)(given, out=taeda.empty(0))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_into_bools_are_refused(name):
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        getattr(taeda, name)(X, 0, out=taeda.empty(0, dtype=taeda.bool))


@pytest.mark.parametrize("power", [taeda.matrix_power, taeda.linalg.matrix_power])
def test_only_powers_that_are_products_want_their_dtype(power):
    a = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    for n in (0, 1):
        out = power(a, n, out=taeda.empty(0, dtype=taeda.float64))
        assert out.dtype == taeda.float64
        assert taeda.equal(out, power(a, n).double())
    for n in (-1, 2, 3):
        with pytest.raises(RuntimeError, match="to have dtype float, but got double"):
            power(a, n, out=taeda.empty(0, dtype=taeda.float64))
        assert taeda.equal(power(a, n, out=taeda.empty(2, 2)), power(a, n))


def test_inner_with_a_number_casts():
    wide = taeda.empty(0, dtype=taeda.float64)
    out = taeda.inner(X, taeda.tensor(2.0), out=wide)
    assert taeda.equal(out, X.double() * 2)
    with pytest.raises(RuntimeError, match="to have dtype float, but got double"):
        taeda.inner(X, X, out=taeda.empty(0, dtype=taeda.float64))


def test_narrow_copy_wants_its_dtype():
    with pytest.raises(RuntimeError, match="dtype float, but got double"):
        taeda.narrow_copy(X, 1, 0, 2, out=taeda.empty(0, dtype=taeda.float64))


def test_range_fills_a_tensor_of_as_many_elements():
    x = taeda.zeros(2, 3)
    taeda.range(0, 3, out=x[:, 1:])
    assert x.tolist() == [[0, 0, 1], [0, 2, 3]]
    y = taeda.empty(1, 4)
    taeda.range(1, 4, out=y)
    assert y.tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize("dim", [None, 0])
def test_means_are_converted_but_not_made_of_integers(dim):
    options = {} if dim is None else {"dim": dim}
    out = taeda.empty((), dtype=taeda.complex64)
    assert taeda.mean(X[0], **options, out=out).tolist() == 1 + 0j
    wide = taeda.empty((), dtype=taeda.float64)
    assert taeda.mean(X[0].half(), **options, out=wide).tolist() == 1
    with pytest.raises(RuntimeError, match="Float can't be cast .* Long"):
        taeda.mean(X[0], **options, out=taeda.empty((), dtype=taeda.int64))
    with pytest.raises(RuntimeError, match="could not infer output dtype. Input"):
        taeda.mean(taeda.arange(3), **options, out=taeda.empty(()))


LINALG = {
    "cholesky": lambda a, **o: taeda.cholesky(a, **o),
    "cholesky_inverse": lambda a, **o: taeda.cholesky_inverse(a, **o),
    "cholesky_solve": lambda a, **o: taeda.cholesky_solve(a, a, **o),
    "cond": lambda a, **o: taeda.linalg.cond(a, **o),
    "pinv": lambda a, **o: taeda.linalg.pinv(a, **o),
    "tensorinv": lambda a, **o: taeda.linalg.tensorinv(a, 1, **o),
    "tensorsolve": lambda a, **o: taeda.linalg.tensorsolve(a, a[0], **o),
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra_says_what_it_would_lose(name):
    a = taeda.eye(2)
    text = "result to be safely castable from Float dtype, but got result with dtype"
    with pytest.raises(RuntimeError, match=f"Expected {text} Long"):
        LINALG[name](a, out=taeda.empty(0, dtype=taeda.int64))
    wide = taeda.empty(0, dtype=taeda.float64)
    assert taeda.equal(LINALG[name](a, out=wide), LINALG[name](a).double())


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.float16, taeda.complex64])
def test_old_names_of_linear_algebra_want_their_dtype(dtype):
    a = taeda.eye(2)
    out = taeda.empty(0, dtype=dtype)
    for call in (
        lambda: taeda.inverse(a, out=out),
        lambda: taeda.slogdet(a, out=(out, out)),
        lambda: taeda.chain_matmul(a, a, out=out),
    ):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            call()
