"""Frequencies into given tensors, and the texts of spectral functions."""

from __future__ import annotations

import pytest
import taeda


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_take_the_dtype_of_their_out(name):
    function = getattr(taeda.fft, name)
    wanted = function(6, 0.5, dtype=taeda.float64)
    out = taeda.empty(wanted.shape, dtype=taeda.float64)
    assert function(6, 0.5, out=out) is out
    assert out.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("how", ["dtype", "out"])
def test_frequencies_are_no_whole_numbers(name, how):
    given = taeda.int64 if how == "dtype" else taeda.empty(4, dtype=taeda.int64)
    with pytest.raises(RuntimeError, match=f"{name} requires a floating point"):
        getattr(taeda.fft, name)(4, **{how: given})


@pytest.mark.parametrize("name", ["rfft", "rfftn", "ihfft", "ihfftn", "rfft2"])
def test_complex_input_of_a_real_transform(name):
    x = taeda.ones(3, 4, dtype=taeda.complex64)
    text = "real input" if name in ("rfft", "ihfft") else "real-valued input"
    with pytest.raises(RuntimeError, match=f"expects a {text} tensor"):
        getattr(taeda.fft, name)(x)


def test_warnings_begin_as_programs_look_for_them():
    x = taeda.rand(32)
    with pytest.warns(UserWarning, match="^A window was not provided"):
        spectrum = taeda.stft(x, 8, return_complex=True)
    window = taeda.ones(8)
    with pytest.warns(UserWarning, match="^The length of signal is shorter"):
        taeda.istft(spectrum, 8, window=window, length=40)


def test_programs_are_told_of_transforms():
    assert taeda.has_spectral
    assert taeda._C.has_spectral
