"""Short-time Fourier transforms as PyTorch's, and what inverts them."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import taeda
import torch

SIGNALS = {"real": (37,), "batch": (3, 40), "complex": (2, 33)}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*window was not provided.*")
        warnings.filterwarnings("ignore", message=".*return_complex=False.*")
        yield


def signal(kind: str) -> np.ndarray:
    source = np.random.default_rng(0)
    x = source.standard_normal(SIGNALS[kind])
    return x + 1j * source.standard_normal(x.shape) if kind == "complex" else x


def window(width: int) -> np.ndarray:
    return np.hanning(width + 2)[1:-1] + 0.1


def both(name: str, x: np.ndarray, n_fft: int, **options):
    """What each library gives, as arrays, and the strides."""
    found = []
    for lib in (taeda, torch):
        given = {
            k: lib.from_numpy(v) if isinstance(v, np.ndarray) else v
            for k, v in options.items()
        }
        y = getattr(lib, name)(lib.from_numpy(x), n_fft, **given)
        found.append((y.numpy(), y.stride()))
    return found


FORMS = [
    {"center": center, "normalized": normalized, "onesided": onesided}
    for center, normalized, onesided in itertools.product(
        (True, False), (False, True), (None, False)
    )
] + [
    {"pad_mode": "constant", "hop_length": 3},
    {"pad_mode": "replicate", "return_complex": False},
    {"win_length": 5, "window": window(5), "hop_length": 2},
    # An odd difference of n_fft and win_length takes PyTorch out of its memory.
    {"win_length": 4, "window": window(4), "center": False, "align_to_window": True},
    {"win_length": 6, "center": False, "align_to_window": False},
    {"window": window(8) + 0.5j, "onesided": False},
]


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("form", FORMS)
def test_stft(kind, form):
    form = {"return_complex": True, **form}
    (ours, strides), (theirs, wanted) = both("stft", signal(kind), 8, **form)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert strides == wanted


@pytest.mark.parametrize("kind", ["real", "batch"])
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"normalized": True, "hop_length": 3},
        {"win_length": 6, "window": window(6)},
        {"length": 20},
        {"length": 60, "window": window(8)},
        {"center": False, "window": window(8)},
        {"onesided": False},
        {"onesided": False, "return_complex": True},
    ],
)
@pytest.mark.filterwarnings("ignore:.*shorter than the length.*")
def test_istft(kind, form):
    """Spectra of no signal, so that windows disagree."""
    source = np.random.default_rng(1)
    bins = 8 if form.get("onesided") is False else 5
    shape = (bins, 9) if kind == "real" else (2, bins, 9)
    x = source.standard_normal(shape) + 1j * source.standard_normal(shape)
    (ours, strides), (theirs, wanted) = both("istft", x, 8, **form)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert strides == wanted


@pytest.mark.parametrize("n_fft, hop", [(8, 2), (9, 3), (16, 4)])
def test_the_inverse_gives_the_signal_back(n_fft, hop):
    x, w = taeda.randn(2, 50, dtype=taeda.float64), taeda.from_numpy(window(n_fft))
    y = taeda.stft(x, n_fft, hop, window=w, return_complex=True)
    found = taeda.istft(y, n_fft, hop, window=w, length=50)
    assert taeda.allclose(found, x, rtol=0, atol=1e-12)
    assert taeda.allclose(y, x.stft(n_fft, hop, None, w, return_complex=True))
    assert taeda.allclose(found, y.istft(n_fft, hop, window=w, length=50))


def test_derivatives():
    w = taeda.from_numpy(window(4)).requires_grad_()
    x = taeda.randn(11, dtype=taeda.float64, requires_grad=True)

    def spectra(x, w):
        return taeda.stft(x, 4, 2, window=w, return_complex=True)

    y = spectra(x, w).detach().requires_grad_()
    assert taeda.autograd.gradcheck(spectra, (x, w))
    assert taeda.autograd.gradcheck(
        lambda y, w: taeda.istft(y, 4, 2, window=w, length=9), (y, w)
    )


def test_transforms_and_shapes():
    x, w = taeda.randn(3, 30), taeda.hann_window(8)

    def there(x):
        return taeda.stft(x, 8, 2, window=w, return_complex=True)

    y = there(x)
    assert taeda.allclose(taeda.vmap(there)(x), y)
    back = taeda.vmap(lambda y: taeda.istft(y, 8, 2, window=w))(y)
    assert taeda.allclose(back, taeda.istft(y, 8, 2, window=w))
    meta = taeda.stft(x.to("meta"), 8, 2, window=w.to("meta"), return_complex=True)
    assert meta.shape == y.shape and meta.dtype == y.dtype
    back = taeda.istft(meta, 8, 2, window=w.to("meta"))
    assert back.shape == (3, 30)
    compiled = taeda.compile(there, fullgraph=True)
    assert taeda.allclose(compiled(x), y, atol=1e-6)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: taeda.stft(x, 8), "requires the return_complex parameter"),
        (lambda x: taeda.stft(x.long(), 8), "floating point or complex values"),
        (lambda x: taeda.stft(x[None, None], 8), "expected a 1D or 2D tensor"),
        (lambda x: taeda.stft(x, 0, center=False), "n_fft=0"),
        (lambda x: taeda.stft(x, 8, 0), "hop_length > 0, but got hop_length=0"),
        (lambda x: taeda.stft(x, 8, 2, 9), "0 < win_length <= n_fft"),
        (lambda x: taeda.stft(x, 8, window=x[:7]), "equal to win_length=8.*\\[7\\]"),
        (lambda x: taeda.stft(x, 8, align_to_window=True), "only be set when center"),
        (lambda x: taeda.stft(x.cfloat(), 8, onesided=True), "onesided output"),
        (lambda x: taeda.istft(x[None], 8), "complex-valued input tensor"),
        (lambda x: taeda.istft(x.cfloat(), 8), "with 2 or 3 dimensions"),
        (lambda x: taeda.istft(x[:, None][:0].cfloat(), 8), "cannot be empty"),
        (lambda x: taeda.istft(x.view(5, 4).cfloat(), 20), "onesided=True, but got 5"),
        (lambda x: taeda.istft(x.view(5, 4).cfloat(), 8, 9), "hop_length <= win"),
        (lambda x: taeda.istft(x.view(5, 4).cfloat(), 8, window=x), "Invalid window"),
        (
            lambda x: taeda.istft(x.view(5, 4).cfloat(), 8, window=0 * x[:8]),
            "window overlap add min: 0",
        ),
    ],
)
def test_refusals(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(taeda.arange(20.0))


def test_warnings_are_pythons():
    x = taeda.randn(20)
    with pytest.warns(UserWarning, match="window was not provided"):
        taeda.stft(x, 8, return_complex=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="deprecated"):
            taeda.stft(x, 8, window=x[:8], return_complex=False)
        with pytest.raises(UserWarning, match="degrees of freedom"):
            taeda.ones(1).var()
        with pytest.raises(UserWarning, match="was resized"):
            taeda.add(x, 1, out=taeda.empty(3))
