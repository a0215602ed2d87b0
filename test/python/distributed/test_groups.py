"""Collectives, messages and groups of real ranks, through both ways for bytes."""

from __future__ import annotations

import numpy as np
import pytest
from programs import SIZES, values
from ranks import run
from taeda import _distributed

WORLD = 3
ROUTES = ["shared", "mpi"] + (["gloo"] if _distributed.has_gloo() else [])


@pytest.mark.parametrize("route", ROUTES)
def test_reductions(tmp_path, route):
    results = run(tmp_path, "reductions", WORLD, route=route)
    assert all(r == results[0] for r in results), results
    combine = {
        "SUM": np.sum,
        "PRODUCT": np.prod,
        "MIN": np.min,
        "MAX": np.max,
        "AVG": np.mean,
    }
    count = 0
    for name, size, got in results[0]:
        parts = np.stack([values(r, size) for r in range(WORLD)])
        if name == "premul":
            want = sum((r + 1) * values(r, size) for r in range(WORLD))
        elif name == "transposed":
            want = parts.sum(0).reshape(2, 3).T.reshape(-1)
        elif name == "bool":
            want = np.ones(size)
        else:
            want = combine.get(name, np.max)(parts, axis=0)
        np.testing.assert_allclose(got, want, rtol=1e-15, err_msg=f"{name} {size}")
        count += 1
    assert count == 5 * len(SIZES) + 9


@pytest.mark.parametrize("route", ROUTES)
def test_messages_of_one_tag_keep_their_order(tmp_path, route):
    # Through Gloo each was posted by a thread of its own.
    sent, received = run(tmp_path, "in_order", 2, route=route)
    assert sent == [] and received == [1 + i * 7919 % 2000 for i in range(200)]


@pytest.mark.parametrize("route", ROUTES)
def test_messages_of_another_size_are_errors(tmp_path, route):
    # Through Gloo a longer one ended the process.
    _, got = run(tmp_path, "wrong_sizes", 2, route=route)
    assert got[3] == [3, 3, 3], got
    for text, size in zip(got, (40, 16, 800_000), strict=False):
        told = f"expected 24 bytes, got a message of {size} bytes from rank 0"
        assert told in text, got


@pytest.mark.parametrize("route", ROUTES)
def test_movements(tmp_path, route):
    results = run(tmp_path, "movements", WORLD, route=route)
    for rank, got in enumerate(results):
        for size in (3, 200_000):
            sums = [values(r, size).sum() for r in range(WORLD)]
            assert got["all_gather", size] == sums
            assert got["into", size]
            assert got["broadcast", size] == sums[1]
            assert got["gather", size] == sums
            assert got["scatter", size] == values(10 + rank, size).sum()
            assert got["reduce_scatter", size] == WORLD * values(10 + rank, size).sum()
            exchanged = [values(10 * r + rank, size + rank).sum() for r in range(WORLD)]
            assert got["all_to_all", size] == exchanged
            assert got["reduce", size] == (sum(sums) if rank == 1 else None)
        assert got["async"]
        assert got["objects"] == list(range(WORLD))


@pytest.mark.parametrize("route", ROUTES)
def test_messages(tmp_path, route):
    results = run(tmp_path, "messages", WORLD, route=route)
    assert results[1]["tags"] == [[1.0], [2.0] * 2, [3.0] * 3]
    assert results[1]["source"] == 0
    assert results[1]["big"]
    assert [r["ring"] for r in results] == [[2.0] * 4, [0.0] * 4, [1.0] * 4]


def test_subgroups_at_once(tmp_path):
    results = run(tmp_path, "groups", 4)
    assert [r["sums"] for r in results] == [[3, 5], [3, 10], [12, 5], [12, 10]]
    assert not any(r["joined"] for r in results)


def test_mesh_and_functional_collectives(tmp_path):
    results = run(tmp_path, "meshes", 4)
    assert [r["row"] for r in results] == [11.0, 11.0, 1100.0, 1100.0]
    assert [r["coordinate"] for r in results] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert results[1]["whole"] == [2.0, 2.0, 4.0, 2.0]
    # Each of two ranks weighs the gathered values alike.
    assert [r["grad"] for r in results] == [[0, 2], [0, 2], [4, 6], [4, 6]]


def test_flight_record(tmp_path):
    for record in run(tmp_path, "records", 2):
        assert [r[:3] for r in record] == [
            ("all_reduce", "completed", 12),
            ("barrier", "completed", 0),
        ]
        assert all(r[3].startswith("programs.py:") for r in record)
