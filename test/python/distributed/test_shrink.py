"""Ranks that are lost: the others go on, without a restart."""

from __future__ import annotations

import signal

import pytest
from ranks import run
from taeda import _distributed

ROUTES = ["shared"] + (["gloo"] if _distributed.has_gloo() else [])


@pytest.mark.parametrize("route", ROUTES)
def test_the_world_goes_on_without_a_rank(tmp_path, route):
    results = run(tmp_path, "shrink_programs.lost", 4, route=route)
    assert results[1] == -signal.SIGKILL
    for place, rank in enumerate((0, 2, 3)):
        got = results[rank]
        assert not isinstance(got, str), got
        assert got["told"] and got["default"] and not got["others"]
        assert got["place"] == (place, 3) and got["ranks"] == [0, 1, 2]
        assert got["sum"] == 1101.0
        assert got["pair"] == (None if place == 1 else 1001.0)
        assert got["objects"] == [0, 2, 3]


def test_ranks_are_lost_one_after_the_other(tmp_path):
    results = run(tmp_path, "shrink_programs.twice", 4)
    assert results == [[111.0, 11.0]] * 2 + [-signal.SIGKILL] * 2


@pytest.mark.parametrize("route", ROUTES)
def test_a_subgroup_is_shrunk_and_the_world_stays(tmp_path, route):
    first, second, *left = run(tmp_path, "shrink_programs.part", 4, route=route)
    assert first == second == 1111.0
    for place, got in enumerate(left):
        assert got == ((place, 2, [2, 3]), 1100.0, 1111.0)


def test_what_cannot_be_shrunk(tmp_path):
    for rank, texts in enumerate(run(tmp_path, "shrink_programs.refused", 2)):
        assert texts == [
            "TypeError: All elements in ranks_to_exclude must be integers. Element at "
            "index 0 is str: x",
            "ValueError: ranks_to_exclude cannot be empty: name at least one rank",
            "TypeError: ranks_to_exclude must be a list, but got tuple",
            "ValueError: Rank 2 at index 0 is out of bounds for group size 2",
            "ValueError: Duplicate rank 1 found in ranks_to_exclude at index 1",
            "ValueError: Cannot exclude all 2 ranks from process group",
            f"RuntimeError: Current rank {rank} is in the exclusion list and should "
            "not call shrink_group(): only those who are left do",
            "ValueError: Invalid shrink_flags value: 2. Must be SHRINK_DEFAULT (0) or "
            "SHRINK_ABORT (1)",
            "TypeError: Process group backend for '0' does not support shrinking "
            "operations.",
        ]


def test_groups_of_devices_go_on_without_a_rank(tmp_path):
    first, status, last = run(tmp_path, "shrink_programs.nccl_lost", 3, route="nccl")
    assert status == -signal.SIGKILL
    assert first == (101.0, 0, 2) and last == (101.0, 1, 2)


def test_a_watchdog_that_stands_still_ends_the_process(tmp_path):
    first, second = run(tmp_path, "shrink_programs.heartbeat", 2, route="nccl")
    assert first == -signal.SIGABRT and second == "lives"
    told = (tmp_path / "told").read_text()
    assert "the watchdog of rank 0 of 2 in group '0' has stood still for 1000" in told
    assert "barrier #2" in told and "shrink_programs.py:" in told, told
