"""Ranks that die, disagree or do not come: every other rank raises and says who."""

from __future__ import annotations

import os
import time

import pytest
from ranks import run


@pytest.mark.parametrize("victim", [0, 2])
def test_killed_rank(tmp_path, victim):
    started = time.monotonic()
    results = run(tmp_path, "killed", 3, victim, limit=30)
    assert time.monotonic() - started < 15
    assert results[victim] == -9
    for rank, text in enumerate(results):
        if rank != victim:
            assert f"rank {victim} has ended" in text, text
            assert "all_reduce #" in text and f"at rank {rank} of 3" in text, text


@pytest.mark.parametrize("route", ["", "gloo"])
def test_a_new_group_does_not_wait_for_a_stopped_store(tmp_path, route):
    """The store's own limit is a minute, the group's a second."""
    first, *others = run(tmp_path, "stopped_server", 3, route=route)
    assert first == (0.0, "went on")
    for rank, (seconds, text) in enumerate(others, 1):
        assert seconds < 6.0
        assert f"init_process_group: rank {rank} of 3 lost the store" in text, text


def test_different_calls(tmp_path):
    results = run(tmp_path, "disagreeing", 3)
    assert all("instead" in r or "met an error" in r for r in results), results
    assert any("called all_" in r and "#1" in r for r in results), results
    for text in results:
        assert "all_gather #1" in text and "all_reduce #1" in text, results


def test_timeout_says_where_ranks_stand(tmp_path):
    told, waited = run(tmp_path, "late", 2)
    assert waited == "waited"
    assert "all_reduce #2 of float32, 12 bytes, SUM at rank 0 of 2" in told
    assert "timed out after 1000 ms" in told
    assert "rank 1 has finished barrier #1" in told


def test_nothing_stays_in_shared_memory():
    left = [n for n in os.listdir("/dev/shm") if n.startswith("taeda-")]
    assert left == []
