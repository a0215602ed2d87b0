"""Remote calls between real processes: as in PyTorch, many at once, and with faults."""

from __future__ import annotations

import numpy as np
import taeda
from ranks import run

WORLD = 3


def pairs(ours: dict, theirs: dict):
    assert ours.keys() == theirs.keys() and ours
    return [(key, ours[key], theirs[key]) for key in ours]


def test_as_in_pytorch(tmp_path):
    results = []
    for name in ("taeda", "torch"):
        (tmp_path / name).mkdir()
        args = ("rpc_programs.forked", 1, name, WORLD)
        results.append(run(tmp_path / name, *args, limit=300)[0])
    ours, theirs = results[0][0]["modules"], results[1][0]["modules"]
    for key in ("losses", "weights", "later"):
        for one, other in zip(ours.pop(key), theirs.pop(key), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    for rank, (ours, theirs) in enumerate(zip(*results, strict=True)):
        for key, one, other in pairs(ours, theirs):
            assert one == other, (rank, key, one, other)
    assert len(results[0][0]) == 41
    assert results[0][0]["apart"] == (None, None)


def mixed(x, weight=1.0):
    y = x * 2
    return (y * x * weight + y**2).sum()


def test_results_that_nobody_uses(tmp_path):
    """The pass ends, and what it did come by is right."""
    found = run(tmp_path, "rpc_programs.unused", WORLD)[0]
    a = taeda.arange(1.0, 4.0).requires_grad_()
    used = a * 3
    (want,) = taeda.autograd.grad((used * used * a).sum(), a)
    assert found["unused"] == want.tolist()
    (want,) = taeda.autograd.grad(mixed(a * a), a)
    assert found["waiting"] == want.tolist()
    assert found["contexts"] == 0


def test_many_calls_at_once(tmp_path):
    for found in run(tmp_path, "rpc_programs.busy", WORLD):
        for key, name in (("odd", "Odd"), ("local", "fail_locally.<locals>.Local")):
            text = found.pop(key)
            assert text.startswith("RuntimeError: Failed to create original exception")
            assert name in text and "On WorkerInfo(id=1, name=w1)" in text
        assert found.pop("by key").startswith("KeyError: ")
        assert found.pop("twice") == "RuntimeError: RPC is already initialized"
        assert found == {"deep": 24, "failed": [], "count": 100, "large": True}


def test_values_are_kept_as_long_as_somebody_refers_to_them(tmp_path):
    found = run(tmp_path, "rpc_programs.counted", WORLD)[0]
    assert found == {
        "two": 1, "kept": 1, "still there": 3, "mine": 1, "none": (0, 0),
    }  # fmt: skip


def test_killed_worker(tmp_path):
    results = run(tmp_path, "rpc_programs.killed", WORLD, limit=30)
    assert results[1] == -9
    for rank in (0, 2):
        *texts, seconds = results[rank]
        assert len(texts) >= 4 and seconds < 15
        for text in texts:
            assert text.startswith("RuntimeError") and "w1" in text, text


def test_stopped_worker(tmp_path):
    results = run(tmp_path, "rpc_programs.stopped", 2, limit=30)
    *texts, sent, seconds = results[0]
    for text in texts[:3]:
        assert "timeout (1000 ms)" in text and "worker w1 (id 1)" in text, text
    assert "w1" in texts[3] and texts[3].startswith("RuntimeError"), texts[3]
    # Senders do not wait for a worker that does not read; 10 s for a busy machine.
    assert sent < 10 and seconds < sent + 1 + 1 + 5 + 10


def test_workers_that_come_and_go(tmp_path):
    results = run(tmp_path, "rpc_programs.coming_and_going", WORLD)
    told = "RuntimeError: name:w2,rank:2 could not find destination name w7"
    assert results == ["", "", "[True, True, True]" + told]
