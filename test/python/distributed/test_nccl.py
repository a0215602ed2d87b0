"""The backend "nccl" on emulated devices, whose NCCL moves bytes on the host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
from ranks import ROOT, run

WORLD = 3


def test_reductions(tmp_path):
    for got in run(tmp_path, "nccl_programs.reductions", WORLD, route="nccl"):
        assert not isinstance(got, str), got
        for name in "float64 float32 float16 bfloat16 int8 uint8 int32 int64".split():
            assert got[name] == [6.0] * 3, name
        want = {"SUM": 6, "PRODUCT": 6, "MIN": 1, "MAX": 3, "AVG": 2}
        assert {op: got[op] for op in want} == want
        assert got["premul"] == [3.0, 3.0]
        assert got["bool"] == [True, False]
        assert got["complex"] == [3 + 3j]
        assert got["refused"] == "Cannot use ReduceOp.BXOR with NCCL"


def test_movements(tmp_path):
    results = run(tmp_path, "nccl_programs.movements", WORLD, route="nccl")
    for rank, got in enumerate(results):
        assert not isinstance(got, str), got
        rows = [[r + 1.0] * 2 for r in range(WORLD)]
        assert got["all_gather"] == rows
        assert got["broadcast"] == [2]
        assert got["gather"] == (rows if rank == 1 else [])
        assert got["scatter"] == [11.0 + rank] * 2
        assert got["reduce_scatter"] == [WORLD * (rank + 1.0)] * 2
        assert got["reduce"] == ([6.0] * 3 if rank == 0 else None)
        sources = [1.0, 2.0, 3.0, (rank - 1) % WORLD + 1.0]
        assert got["all_to_all"] == sorted(sources)
        assert got["objects"] == [0, 1, 2]
        assert got["batch"] == (rank - 1) % WORLD + 1
        assert got.get("message") == ([7.0] * 3 if rank == 1 else None)


def test_streams_groups_and_splits(tmp_path):
    results = run(tmp_path, "nccl_programs.streams", WORLD, route="nccl")
    for rank, got in enumerate(results):
        assert not isinstance(got, str), got
        assert got["ordered"] == 2.0 and got["ended"]
        assert got["future"] == [12.0]
        assert got["recorded"] == ("all_reduce", 4, "completed")
        assert got.get("group") == ([4.0] if rank != 1 else None)
        assert got["split"] == ([3.0, 3.0] if rank < 2 else None)


def test_training_as_one_process(tmp_path):
    (alone,) = run(tmp_path, "nccl_programs.training", 1, route="nccl")
    assert not isinstance(alone, str), alone
    (tmp_path / "several").mkdir()
    for weights in run(tmp_path / "several", "nccl_programs.training", 2, route="nccl"):
        assert not isinstance(weights, str), weights
        for got, want in zip(weights, alone, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_late_rank_is_named_and_the_record_is_written(tmp_path):
    told, waited = run(tmp_path, "nccl_programs.late", 2, route="nccl")
    assert waited == "waited"
    assert "all_reduce #2 of taeda.float32, 12 bytes at rank 0 of 2" in told, told
    assert "timed out after 2000 ms" in told
    assert "rank 0: in #2 all_reduce of float32 [3], SUM, called at" in told, told
    assert "rank 1 late: behind #1 barrier" in told and " in late" in told, told
    assert "'completed', 'started'" in told


def test_a_rank_that_waits_too_long_is_ended(tmp_path):
    first, second = run(tmp_path, "nccl_programs.torn_down", 2, route="nccl")
    assert first == -signal.SIGABRT and second == "waited"


def test_rank_that_does_not_come_is_named(tmp_path):
    told, _, third = run(tmp_path, "nccl_programs.absent", WORLD, route="nccl")
    for text in (told, third):
        assert "a communicator on cuda:0; not there: rank 1" in text, text


def _alone(text: str, **variables: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **variables}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_nccl_is_missing_the_package_is_named():
    text = """
import taeda.distributed as dist
assert not dist.is_nccl_available() and not dist.is_backend_available("nccl")
try:
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
except RuntimeError as error:
    print(error)
"""
    told = _alone(text, TAEDA_NCCL_LIBRARY="/nowhere/libnccl.so.2")
    assert "Install the package nvidia-nccl-cu12" in told
    assert "/nowhere/libnccl.so.2" in told
