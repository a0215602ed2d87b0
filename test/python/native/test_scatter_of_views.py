"""Copies with a part replaced lie in memory as what they were made of."""

from __future__ import annotations

import warnings

import pytest


def with_gaps(T):
    return T.arange(60.0).reshape(10, 6)[1::2, 1:5:2]


CALLS = {
    "diagonal": lambda T, x: T.diagonal_scatter(x, T.zeros(2)),
    "select": lambda T, x: T.select_scatter(x, T.zeros(2), 0, 1),
    "slice": lambda T, x: T.slice_scatter(x, T.zeros(1, 2), 0, 0, 1),
    "as_strided": lambda T, x: T.as_strided_scatter(x, T.zeros(2), (2,), (2,), 9),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_gaps_stay(torch, call):
    import taeda

    ours, theirs = (call(T, with_gaps(T)) for T in (taeda, torch))
    assert ours.stride() == theirs.stride() == (12, 2)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("offset", [0, 7, 13, 40])
def test_as_strided_scatter_reaches_beyond_its_tensor(torch, offset):
    import taeda

    ours, theirs = (
        T.as_strided_scatter(with_gaps(T), -T.ones(9), (9,), (1,), offset)
        for T in (taeda, torch)
    )
    assert ours.tolist() == theirs.tolist()


def test_shared_elements_are_separate_in_the_copy(torch):
    import taeda

    ours, theirs = (
        T.diagonal_scatter(T.arange(3.0).expand(4, 3), T.zeros(3))
        for T in (taeda, torch)
    )
    assert ours.stride() == theirs.stride() == (3, 1)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("start", [(0,), (2, 2)])
def test_results_that_take_their_size_are_row_major(torch, start):
    import taeda

    def run(T):
        out, src = T.empty(start), -T.ones(2, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            T.slice_scatter(T.arange(16.0).reshape(4, 4).t(), src, 0, 1, 3, out=out)
        return out.stride(), out.tolist()

    assert run(taeda) == run(torch)
