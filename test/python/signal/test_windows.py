"""taeda.signal.windows against PyTorch's in float64, and what they refuse."""

from __future__ import annotations

import inspect
import math

import pytest
import taeda
import torch
from taeda.signal import windows

CALLS = [
    *((name, {}) for name in windows.__all__ if name != "general_cosine"),
    ("general_cosine", {"a": [0.46, 0.23, 0.31]}),
    ("general_cosine", {"a": (1,)}),
    ("general_hamming", {"alpha": 0.7}),
    ("exponential", {"tau": 0.5}),
    ("gaussian", {"std": 2.5}),
    ("kaiser", {"beta": 3}),
    ("kaiser", {"beta": 0}),
]


def test_names_and_signatures_are_those_of_torch() -> None:
    assert sorted(windows.__all__) == sorted(torch.signal.windows.__all__)
    for name in windows.__all__:
        ours = inspect.signature(getattr(windows, name)).parameters
        theirs = inspect.signature(getattr(torch.signal.windows, name)).parameters
        assert list(ours) == list(theirs)
        assert [p.kind for p in ours.values()] == [p.kind for p in theirs.values()]


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize(("name", "options"), CALLS)
def test_values(name: str, options: dict, sym: bool) -> None:
    for length in (0, 1, 2, 5, 12):
        call = {**options, "sym": sym}
        found = getattr(windows, name)(length, **call, dtype=taeda.float64)
        theirs = getattr(torch.signal.windows, name)
        want = theirs(length, **call, dtype=torch.float64).tolist()
        assert found.tolist() == pytest.approx(want, rel=1e-13, abs=1e-15)
        rounded = getattr(windows, name)(length, **call)
        assert taeda.equal(rounded, found.float())


def test_kaiser_of_a_large_beta_does_not_overflow() -> None:
    found = windows.kaiser(5, beta=2000.0, dtype=taeda.float64).tolist()
    assert found[2] == 1
    assert 0 < found[1] < 1e-100 and found[0] == 0


def test_the_center_of_a_periodic_exponential_window() -> None:
    found = windows.exponential(4, center=1.0, sym=False, dtype=taeda.float64)
    assert found.tolist() == [math.exp(-abs(k - 1.0)) for k in range(4)]


def test_options_of_the_tensor() -> None:
    assert windows.hann(3, requires_grad=True).requires_grad
    assert windows.hann(4, device="meta").shape == (4,)
    assert windows.hann(4).dtype == taeda.float32


@pytest.mark.parametrize(
    ("name", "call", "error"),
    [
        ("hann", {"M": -1}, ValueError),
        ("hann", {"M": 3, "dtype": taeda.int64}, ValueError),
        ("hann", {"M": 3, "dtype": taeda.float16}, ValueError),
        ("hann", {"M": 3, "layout": taeda.sparse_coo}, ValueError),
        ("hann", {"M": 2.5}, TypeError),
        ("exponential", {"M": 3, "tau": 0}, ValueError),
        ("exponential", {"M": 3, "center": 1.0}, ValueError),
        ("gaussian", {"M": 3, "std": -1.0}, ValueError),
        ("kaiser", {"M": 3, "beta": -1.0}, ValueError),
        ("general_cosine", {"M": 3, "a": []}, ValueError),
        ("general_cosine", {"M": 3, "a": 2}, TypeError),
    ],
)
def test_refusals(name: str, call: dict, error: type) -> None:
    with pytest.raises(error):
        getattr(windows, name)(**call)
