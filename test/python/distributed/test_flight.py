"""One report says where all ranks are when one of them fails."""

from __future__ import annotations

import json

import pytest
from ranks import run
from taeda import _distributed
from taeda.distributed._flight_report import explain

ROUTES = ["shared"] + (["gloo"] if _distributed.has_gloo() else [])
# Seconds that a report may take beyond the limit.
MORE = 5.0


@pytest.mark.parametrize("route", ROUTES)
def test_who_is_late_and_where_all_are(tmp_path, route):
    *others, waited = run(tmp_path, "flight_programs.late", 3, route=route)
    assert waited == "waited"
    reports = set()
    for text, seconds in others:
        assert seconds < 2 + MORE
        report = text[text.index("flight record of group '0'") :]
        reports.add(report)
        assert "rank 2 late: behind #1 barrier, called at " in report, text
        assert "flight_programs.py:" in report and " in _stuck" in report, text
        assert "ranks 0, 1: in #2 all_reduce of float32 [3], SUM, called" in report
        assert "disagree" not in report and "no answer" not in report, text
    # One rank gathers; the others repeat what it found.
    assert len(reports) == 1, reports


def test_a_rank_that_holds_the_lock_is_named(tmp_path):
    *others, _ = run(tmp_path, "flight_programs.locked", 3)
    for text, seconds in others:
        assert seconds < 1 + MORE
        assert "rank 2: no answer" in text, text
        assert "ranks 0, 1: in #2 all_reduce" in text, text


@pytest.mark.parametrize("route", ROUTES)
def test_a_killed_rank_gives_no_answer(tmp_path, route):
    first, second, status = run(tmp_path, "flight_programs.killed", 3, route=route)
    assert status == -9
    for text, seconds in (first, second):
        assert seconds < MORE
        assert "rank 2: no answer" in text, text


def test_what_ranks_disagree_on(tmp_path):
    results = run(tmp_path, "flight_programs.disagreeing", 3)
    for text, seconds in results:
        assert seconds < 2 + MORE
        assert "ranks disagree on #2: ranks 0, 2 all_reduce of float32 [3]" in text
        assert "rank 1 all_reduce of float32 [2, 2], SUM" in text, text


@pytest.mark.parametrize("route", ROUTES)
def test_a_message_that_does_not_come(tmp_path, route):
    (text, seconds), _ = run(tmp_path, "flight_programs.message", 2, route=route)
    assert seconds < 1 + MORE
    assert "rank 1: before its first collective; its program is at" in text, text
    assert " in _stuck" in text, text


def test_a_failure_is_reported_once(tmp_path):
    ((first, _), (second, seconds)), _ = run(tmp_path, "flight_programs.repeated", 2)
    assert "flight record of group '0'" in first
    assert "flight record" not in second and seconds < 1, second


def test_ranks_of_a_subgroup(tmp_path):
    (text, _), _, _ = run(tmp_path, "flight_programs.subgroup", 3)
    assert ", ranks [0, 2], gathered by rank 0:" in text, text
    assert "rank 1 late: before its first collective" in text, text


def _call(number: int, kind: str, state: str, **more) -> dict:
    call = {"collective_seq_id": number, "collective": kind, "state": state}
    call |= {"caller": "a.py:1", "dtype": "float32", "sizes": [2], "op": "SUM"}
    return call | {"root": -1, "peer": -1} | more


def _answers(*calls: list) -> dict:
    told = {
        r: {"question": 1, "line": f"a.py:{r} in f", "groups": {"g": c}}
        for r, c in enumerate(calls)
    }
    return {r: json.loads(json.dumps(answer)) for r, answer in told.items()}


def test_positions_of_ranks():
    done, begun = "completed", "started"
    text = explain(
        "g",
        [0, 1, 2, 3],
        1,
        _answers(
            [_call(4, "all_reduce", done), _call(5, "broadcast", begun, root=2)],
            [_call(4, "all_reduce", begun), _call(5, "broadcast", "scheduled")],
            [_call(4, "all_reduce", done), _call(5, "broadcast", begun, root=2)],
        ),
    )
    lines = [line.strip() for line in text.split("\n")]
    assert lines[0] == "flight record of group 'g', gathered by rank 1:"
    assert lines[1].startswith("rank 1 late: in #4 all_reduce of float32 [2], SUM")
    assert lines[2].startswith("rank 0: in #5 broadcast of float32 [2], root 2")
    assert "ranks disagree on #5: ranks 0, 2 broadcast of float32 [2], root 2" in text
    assert lines[-1].startswith("rank 3: no answer")


def test_exchanges_of_other_sizes_agree():
    calls = [_call(1, "all_to_all", "started", sizes=[n]) for n in (1, 2)]
    text = explain("g", [0, 1], 0, _answers([calls[0]], [calls[1]]))
    assert "disagree" not in text and "late" not in text


def test_a_monitored_barrier_tells_the_log(tmp_path):
    (text, seconds, told), _, _ = run(tmp_path, "flight_programs.barrier", 3)
    assert text == "Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms"
    assert seconds < 1 + MORE and len(told) == 1
    assert "ranks 1, 2: before its first collective; its program is at" in told[0], told
