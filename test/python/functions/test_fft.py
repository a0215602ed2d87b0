"""Fourier transforms: against their definition, PyTorch's rules, and derivatives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import taeda
import torch

LENGTHS = [1, 2, 3, 4, 5, 6, 8, 9, 12, 15, 49, 61, 64, 67, 97, 122, 127, 134, 360, 1009]
KINDS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TAKES_REAL = ("rfft", "ihfft")


def _input(kind, *shape, dtype=np.complex128):
    random = np.random.default_rng(sum(shape))
    real = random.normal(size=shape)
    if kind not in TAKES_REAL:
        real = real + 1j * random.normal(size=shape)
    return real.astype(
        dtype if kind not in TAKES_REAL else np.dtype(dtype).type(0).real
    )


def _close(got, want, tolerance=1e-14, values=None):
    """Shape and dtype are PyTorch's; so are numbers, but for `values` of NumPy.

    The library that PyTorch has on processors of Intel is off by 3e-14 for lengths with
    prime factors such as 61 and 73, NumPy by 3e-16.
    """
    assert tuple(got.shape) == tuple(want.shape)
    assert str(got.dtype)[6:] == str(want.dtype)[6:]
    values = want.resolve_conj().numpy() if values is None else values
    gap = np.abs(got.resolve_conj().numpy() - values)
    assert gap.max(initial=0) <= tolerance * np.abs(values).max(initial=1)


@pytest.mark.parametrize("n", LENGTHS)
def test_the_definition(n) -> None:
    k = np.arange(n)
    x = _input("fft", 3, n)
    want = x @ np.exp(-2j * np.pi * ((k[:, None] * k) % n) / n)
    got = taeda.fft.fft(taeda.tensor(x)).numpy()
    assert np.abs(got - want).max() < 1e-13 * np.abs(want).max()
    single = taeda.fft.fft(taeda.tensor(x.astype(np.complex64))).numpy()
    error = np.sqrt((np.abs(single - want) ** 2).sum() / (np.abs(want) ** 2).sum())
    assert error < 3e-7
    back = taeda.fft.ifft(taeda.tensor(got)).numpy()
    assert np.abs(back - x).max() < 1e-13


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_norm_and_length(kind, norm) -> None:
    for n in LENGTHS[1:]:
        x = _input(kind, 2, n)
        for wanted in (None, n, n + 3, max(n - 1, 1)):
            got, want = (
                getattr(t.fft, kind)(t.tensor(x), wanted, norm=norm)
                for t in (taeda, torch)
            )
            values = getattr(np.fft, kind)(x, wanted, norm=norm)
            _close(got, want, values=values)


@pytest.mark.parametrize("kind", KINDS)
def test_dims_strides_and_types(kind) -> None:
    x = _input(kind, 4, 5, 6)
    ways = [
        lambda t: t,
        lambda t: t.permute(2, 0, 1),
        lambda t: t[::2, 1:],
        lambda t: t.expand(2, 4, 5, 6),
        lambda t: t.conj(),
    ]
    for way in ways:
        a, b = way(taeda.tensor(x)), way(torch.tensor(x))
        for dim in range(-b.dim(), b.dim()):
            got, want = (
                getattr(t.fft, kind)(v, dim=dim) for t, v in ((taeda, a), (torch, b))
            )
            _close(got, want)
        for dims in [(0, 1), (2, 0), (1, -1, 0)]:
            for name in (kind + "n", kind + "2"):
                got, want = (
                    getattr(t.fft, name)(v, dim=dims)
                    for t, v in ((taeda, a), (torch, b))
                )
                _close(got, want)
    for dtype in ("int64", "uint8", "bool", "float32"):
        values = np.arange(6) % 3
        got, want = (
            getattr(t.fft, kind)(t.tensor(values, dtype=getattr(t, dtype)))
            for t in (taeda, torch)
        )
        _close(got, want, 1e-6)


def test_empty_batches() -> None:
    x = taeda.empty(0, 4, 6)
    assert taeda.fft.rfft(x).shape == (0, 4, 4)
    assert taeda.fft.fft2(x).shape == (0, 4, 6)
    assert taeda.fft.irfft(x, dim=1).shape == (0, 6, 6)


def test_large_lines_and_batches() -> None:
    for shape in [(3, 2**15), (2**9, 33), (1, 10007), (70, 70)]:
        x = _input("fft", *shape)
        for dim in (0, 1):
            _close(
                taeda.fft.fft(taeda.tensor(x), dim=dim),
                torch.fft.fft(torch.tensor(x), dim=dim),
            )


@pytest.mark.parametrize("n", [2**18, 2**19, 360000, 2 * 3**11])
def test_lines_that_no_cache_holds(n) -> None:
    for kind in ("fft", "ifft", "rfft", "irfft"):
        for dtype, tolerance in ((np.complex128, 1e-14), (np.complex64, 2e-6)):
            x = _input(kind, n, dtype=dtype)
            got, want = (
                getattr(t.fft, kind)(t.tensor(x), n, norm="ortho")
                for t in (taeda, torch)
            )
            _close(got, want, tolerance)


# More and fewer lines than a vector holds, and lengths whose stages fill vectors,
# parts of them or none.
@pytest.mark.parametrize("n", [16, 28, 48, 64, 100, 243, 250, 256, 512, 1000])
@pytest.mark.parametrize("lines", [1, 3, 16, 37])
def test_lines_side_by_side(n, lines) -> None:
    for dtype, tolerance in ((np.complex128, 1e-14), (np.complex64, 1e-6)):
        for kind in KINDS:
            x = _input(kind, lines, n, dtype=dtype)
            for dim in (1, 0):
                # Lines along memory and across it.
                for across in (False, True):
                    a, b = taeda.tensor(x), torch.tensor(x)
                    if across:
                        a, b = (t.t().contiguous().t() for t in (a, b))
                    if a.size(dim) == 1 and kind in ("irfft", "hfft"):
                        continue
                    got, want = (
                        getattr(t.fft, kind)(v, dim=dim)
                        for t, v in ((taeda, a), (torch, b))
                    )
                    values = getattr(np.fft, kind)(x, axis=dim)
                    _close(got, want, tolerance, values)


def test_both_halves_of_real_spectra() -> None:
    for shape in [(5,), (6,), (7, 9), (8, 12), (3, 64, 10)]:
        x = np.random.default_rng(3).normal(size=shape)
        for name in ("fft", "ifft", "fftn", "ifftn"):
            for turned in (False, len(shape) > 1):
                a, b = taeda.tensor(x), torch.tensor(x)
                a, b = (a.mT, b.mT) if turned else (a, b)
                got, want = getattr(taeda.fft, name)(a), getattr(torch.fft, name)(b)
                _close(got, want)
                assert got.stride() == want.stride()
                assert got.is_conj() == want.is_conj()


def test_plans_are_shared_by_threads() -> None:
    lengths = [*range(2, 60), 256, 1009, 2**12] * 3
    values = {n: np.random.default_rng(n).normal(size=(2, n)) for n in lengths}

    def gap(n):
        got = taeda.fft.rfft(taeda.tensor(values[n])).numpy()
        return np.abs(got - np.fft.rfft(values[n])).max()

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(gap, lengths)) < 1e-11


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_to_the_second_order(kind) -> None:
    for shape, dims in [((2, 5), (1,)), ((2, 6), (1,)), ((3, 4), (1, 0))]:
        x = taeda.tensor(_input(kind, *shape), requires_grad=True)

        def call(t, dims=dims):
            # What the symmetry makes real is not looked at, so not perturbed.
            return getattr(taeda.fft, kind + "n")(t, dim=dims, norm="ortho")

        assert taeda.autograd.gradcheck(call, x)
        assert taeda.autograd.gradgradcheck(call, x)


def test_derivatives_of_whole_spectra_of_real_numbers() -> None:
    x = taeda.randn(3, 6, dtype=taeda.float64, requires_grad=True)
    for call in (taeda.fft.fft, taeda.fft.ifft, taeda.fft.fftn, taeda.fft.ifftn):
        assert taeda.autograd.gradcheck(call, x, check_forward_ad=True)
        assert taeda.autograd.gradgradcheck(call, x)
        assert taeda.allclose(taeda.vmap(call)(x), taeda.stack([call(r) for r in x]))


def test_transforms_of_functions() -> None:
    x = taeda.randn(3, 4, 6, dtype=taeda.float64)
    got = taeda.vmap(lambda t: taeda.fft.rfft2(t))(x)
    assert taeda.allclose(got, taeda.fft.rfft2(x))
    _, tangent = taeda.func.jvp(taeda.fft.rfft, (x,), (x,))
    assert taeda.allclose(tangent, taeda.fft.rfft(x))
    meta = taeda.fft.irfftn(taeda.empty(3, 4, 6, device="meta", dtype=taeda.complex64))
    assert meta.shape == (3, 4, 10) and meta.dtype == taeda.float32


def test_out() -> None:
    x = taeda.randn(3, 4)
    out = taeda.empty(0, dtype=taeda.complex64)
    assert taeda.fft.fft(x, dim=0, out=out) is out
    assert out.is_contiguous() and taeda.equal(out, taeda.fft.fft(x, dim=0))
    with pytest.raises(RuntimeError):
        taeda.fft.fft(x, out=taeda.empty(3, 4))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda t: t.fft.fft(t.ones(4, dtype=t.float16)), RuntimeError),
        (lambda t: t.fft.rfft(t.ones(4, dtype=t.complex64)), RuntimeError),
        (lambda t: t.fft.ihfft2(t.ones(4, 4, dtype=t.complex64)), RuntimeError),
        (lambda t: t.fft.fft(t.ones(4), 0), RuntimeError),
        (lambda t: t.fft.fft(t.ones(4), norm="no"), RuntimeError),
        (lambda t: t.fft.fft(t.ones(4), dim=1), IndexError),
        (lambda t: t.fft.fft(t.tensor(1.0)), IndexError),
        (lambda t: t.fft.irfft(t.ones(1)), RuntimeError),
        (lambda t: t.fft.fftn(t.ones(4, 4), dim=(0, 0)), RuntimeError),
        (lambda t: t.fft.fftn(t.ones(4, 4), s=(2,), dim=(0, 1)), RuntimeError),
        (lambda t: t.fft.fftn(t.ones(4), s=(2, 2)), RuntimeError),
        (lambda t: t.fft.rfftn(t.ones(4, 4), dim=()), RuntimeError),
    ],
)
def test_refusals(call, kind) -> None:
    for library in (torch, taeda):
        with pytest.raises(kind):
            call(library)
