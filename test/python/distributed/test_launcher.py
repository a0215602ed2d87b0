"""The launcher: what workers are told, restarts, a worker that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[3]


def launch(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess:
    (folder / "job.py").write_text(textwrap.dedent(source))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "taeda.distributed.run", "--standalone", *options]
    return subprocess.run(
        [*command, "job.py"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_collective_of_workers(tmp_path):
    source = """
        import taeda, taeda.distributed as dist
        dist.init_process_group("gloo")
        x = taeda.ones(2) * (dist.get_rank() + 1)
        dist.all_reduce(x)
        open(f"sum.{dist.get_rank()}", "w").write(str(x.tolist()))
        dist.destroy_process_group()
    """
    done = launch(tmp_path, source, "--nproc-per-node=2")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"sum.{r}").read_text() for r in range(2)] == ["[3.0, 3.0]"] * 2


def test_killed_worker_is_restarted(tmp_path):
    source = """
        import os, signal, pathlib
        import taeda, taeda.distributed as dist
        dist.init_process_group("gloo")
        first = not pathlib.Path("died").exists()
        dist.barrier()
        if dist.get_rank() == 1 and first:
            pathlib.Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        x = taeda.ones(1)
        dist.all_reduce(x)
        name = f"end.{dist.get_rank()}"
        open(name, "w").write(os.environ["TORCHELASTIC_RESTART_COUNT"])
    """
    done = launch(tmp_path, source, "--nproc-per-node=2", "--max-restarts=1")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"end.{r}").read_text() for r in range(2)] == ["1", "1"]


def test_failure_is_told(tmp_path):
    source = """
        from taeda.distributed.elastic.multiprocessing.errors import record
        @record
        def main():
            raise ValueError("a very special message")
        main()
    """
    done = launch(tmp_path, source, "--nproc-per-node=1")
    assert done.returncode == 1
    for text in ("ChildFailedError", "a very special message", "rank      : 0"):
        assert text in done.stderr
