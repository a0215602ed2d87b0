"""The GPT on several processes has the losses of one, also after a crash."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLE = (
    pathlib.Path(__file__).parents[3] / "docs" / "examples" / "char_gpt_parallel.py"
)
LAUNCHER = ("-m", "taeda.distributed.run", "--max-restarts=1")
STEPS = 6


def losses(out: pathlib.Path, ranks: int, *options: str) -> dict[int, float]:
    """Losses by step; of a step that was done twice, the last."""
    launched = (*LAUNCHER, f"--nproc-per-node={ranks}") if ranks > 1 else ()
    command = [sys.executable, *launched, str(EXAMPLE), f"--out={out}", *options]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.findall(r"^step (\d+) loss ([\d.]+)$", done.stdout, re.MULTILINE)
    return {int(step): float(loss) for step, loss in found}


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[int, float]:
    found = losses(tmp_path_factory.mktemp("alone"), 1, f"--steps={STEPS}")
    assert sorted(found) == list(range(STEPS)) and found[0] > found[STEPS - 1]
    return found


@pytest.mark.parametrize(
    ("kind", "ranks"),
    [
        *(("ddp", n) for n in (2, 3)),
        ("fsdp", 2),
        ("tp", 2),
        *(("pp", n) for n in (2, 4)),
        ("2d", 4),
    ],
)
def test_losses_are_those_of_one_process(alone, tmp_path, kind, ranks) -> None:
    found = losses(tmp_path, ranks, f"--parallel={kind}", f"--steps={STEPS}")
    assert found == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "tp", "pp"])
def test_a_killed_rank_costs_the_steps_since_the_checkpoint(
    alone, tmp_path, kind
) -> None:
    options = f"--parallel={kind}", "--every=2"
    found = losses(tmp_path, 2, *options, f"--steps={STEPS - 2}", "--crash-at=3")
    assert found == pytest.approx({i: alone[i] for i in range(STEPS - 2)}, abs=1e-5)
    # One process goes on from what two have written.
    rest = losses(tmp_path, 1, f"--steps={STEPS}")
    assert rest == pytest.approx({i: alone[i] for i in (4, 5)}, abs=1e-5)
