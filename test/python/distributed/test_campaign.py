"""Some faults of the campaign, and that it would notice what it looks for."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time

import campaign
import campaign_programs as programs
import pytest
import taeda
from campaign import Run, possible_ways, run_case
from campaign_cases import FAULTS, PROGRAMS, cases, draw
from campaign_states import check_checkpoint
from taeda.distributed import checkpoint

SEED = 7
NUMBERS = (0, 2, 3, 5, 10, 11, 12, 15, 20, 25)


@pytest.fixture(scope="module")
def ways() -> list[str]:
    return possible_ways()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_random_fault(number, ways) -> None:
    case = draw(SEED, number, ways)
    assert run_case(case).problems == [], case


def test_a_host_is_cut_off_while_a_group_is_made(ways) -> None:
    """Gloo waits for a connection five times as long as it is told."""
    case = dataclasses.replace(draw(91, 54, ways), program="beside", world=4)
    case = dataclasses.replace(case, victims=(1,), moment=0.23)
    if "network" in ways:  # without namespaces it is another fault
        case = dataclasses.replace(case, route="network", fault="cut-one-way")
    assert run_case(case).problems == []


def test_a_seed_has_all_faults_and_is_the_same_again() -> None:
    drawn = list(cases(SEED, 200))
    assert drawn == list(cases(SEED, 200))
    assert {c.fault for c in drawn} == {f for kind in FAULTS.values() for f in kind}
    assert {c.program for c in drawn} == set(PROGRAMS)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        ("DistBackendError: all_reduce #3 at rank 0 of 3: rank 1 has ended", None),
        ("DistBackendError: all_reduce #3 at rank 0 of 3: timed out", "did not name"),
        ("DistBackendError: rank 1 has ended, says rank 0", "did not name"),
        ("Wrong: all_reduce: expected 3, got 2 to 2", "computed wrong values"),
        (None, "did not notice"),
    ],
)
def test_errors_are_judged(tmp_path, error, problem) -> None:
    case = draw(SEED, 0)
    case = dataclasses.replace(case, fault="kill", victims=(1,), world=3)
    found = Run(case, tmp_path, None)._judge(0, error)
    assert found == problem if problem is None else found.startswith(problem)


@pytest.mark.parametrize(
    ("saved", "change", "problem"),
    [
        (programs.EVERY, 0.0, None),
        (2 * programs.EVERY, 0.0, "lost checkpoint: 10 was saved, 5 is there"),
        (programs.EVERY, 1e-3, "the checkpoint of step 5 has another 0.weight"),
    ],
)
@pytest.mark.filterwarnings("ignore:no process group")
def test_checkpoints_are_judged(tmp_path, saved, change, problem) -> None:
    model = programs.model_of()
    optimizer = programs.optimizer_of(model)
    for step in range(programs.EVERY):
        x, y = programs.batch_of(step)
        optimizer.zero_grad()
        taeda.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    with taeda.no_grad():
        model[0].weight.add_(change)
    state = programs.state_of(model, optimizer, programs.EVERY)
    checkpoint.save(state, checkpoint_id=tmp_path / "checkpoint")
    (tmp_path / "saved").write_text(str(saved))
    case = dataclasses.replace(draw(SEED, 0), program="ddp")
    found = check_checkpoint(tmp_path, case)
    assert found == [] if problem is None else found[0].startswith(problem)


@pytest.mark.filterwarnings("ignore:no process group")
def test_a_damaged_checkpoint_is_lost(tmp_path) -> None:
    model = programs.model_of()
    state = programs.state_of(model, programs.optimizer_of(model), 5)
    checkpoint.save(state, checkpoint_id=tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / ".metadata").write_bytes(b"nothing")
    (tmp_path / "saved").write_text("5")
    case = dataclasses.replace(draw(SEED, 0), program="ddp")
    assert check_checkpoint(tmp_path, case)[0].startswith("lost checkpoint of step 5")


SLOW = """
import pathlib, sys, time
new = pathlib.Path(sys.argv[1] + ".new")
for step in range(8):
    time.sleep(0.5)
    new.write_text(str(step * int(sys.argv[2])))
    new.rename(sys.argv[1])
"""


@pytest.mark.parametrize(("saves", "hangs"), [(1, False), (0, True)])
def test_slow_training_does_not_hang(tmp_path, monkeypatch, saves, hangs) -> None:
    monkeypatch.setattr(campaign, "START", 1.2)
    case = dataclasses.replace(draw(SEED, 0), fault="worker-kill", seconds=0.0)
    run = Run(case, tmp_path, None)
    command = [sys.executable, "-c", SLOW, str(tmp_path / "saved"), str(saves)]
    with subprocess.Popen(command) as process:
        run.processes, run.struck = {-1: process}, time.monotonic()
        run.wait_for_survivors()
    assert bool(run.problems) == hangs, run.problems
