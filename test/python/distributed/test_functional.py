"""Functional collectives return before they end; what uses their results waits."""

from __future__ import annotations

import pytest
from ranks import run
from taeda import _distributed

ROUTES = ["shared"] + (["gloo"] if _distributed.has_gloo() else [])


@pytest.mark.parametrize("route", ROUTES)
def test_they_return_before_they_end(tmp_path, route):
    first, second = run(
        tmp_path, "functional_programs.before_the_end", 2, route=route, limit=40
    )
    for rank, got in enumerate((first, second)):
        assert not isinstance(got, str), got
        assert got["shapes"] == [(4,), (8,), (2,), (4,), (4,)]
        summed, one = [1.0, 3.0, 5.0, 7.0], [1.0, 2.0, 3.0, 4.0]
        whole = [0.0, 1.0, 2.0, 3.0, *one]
        own = summed[2 * rank :][:2]
        sent = [0.0, 1.0, 1.0, 2.0] if rank == 0 else [2.0, 3.0, 3.0, 4.0]
        assert got["values"] == [summed, whole, own, sent, one]
        assert got["seen"] == [[summed[:2], summed[2:]], summed[1:], summed, one]
        assert got["over"] and got["input"] == [rank + i for i in range(4)]
    assert first["open"] == [True] * 5 and first["lazy"] == [True] * 4


def test_every_use_waits(tmp_path):
    for got in run(tmp_path, "functional_programs.used", 2):
        assert not isinstance(got, str), got
        assert got["plain"] and got["kept"] and got["type"] and got["bool"]
        assert got["add"] == got["written"] == [3.0, 5.0]
        for name in "into numpy asarray pickled copied".split():
            assert got[name] == [2.0, 4.0], name
        assert got["item"] == 2.0 and got["again"] == [4.0, 8.0]
        assert got["text"] == "AsyncCollectiveTensor(tensor([2., 4.]))"
        assert got["chained"] == [[4.0], [8.0]] * 2
        assert got["cat"] == [2.0, 4.0] * 2
        assert got["several"] == [[2.0, 4.0]] * 2


def test_gradients(tmp_path):
    results = run(tmp_path, "functional_programs.gradients", 2)
    assert [r[0] for r in results] == [[1.0, 2.0, 2.0, 2.0]] * 2
    assert [r[1] for r in results] == [[0.0, 2.0], [4.0, 6.0]]


def test_an_error_is_raised_by_each_use(tmp_path):
    texts, waited = run(tmp_path, "functional_programs.failed", 2)
    assert waited == "waited" and len(texts) == 2
    for text in texts:
        assert "all_reduce #1" in text and "timed out after 1000 ms" in text, texts
        assert "rank 1 late: before its first collective" in text, texts


def test_they_are_compiled_and_traced(tmp_path):
    for got in run(tmp_path, "functional_programs.traced", 2):
        assert not isinstance(got, str), got
        eager, compiled, other, names = got
        assert compiled == eager and other != eager
        assert [name.split(".")[-2] for name in names] == [
            "all_reduce",
            "all_gather_into_tensor",
            "reduce_scatter_tensor",
            "broadcast",
            "all_to_all_single",
        ]


def test_ranks_capture_together(tmp_path):
    # At the third call rank 1 has another size, and rank 0 captures with it.
    assert run(tmp_path, "functional_programs.captured_together", 2) == [
        [1, 1, 2, 2],
        [1, 1, 2, 2],
    ]
