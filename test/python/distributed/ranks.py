"""Runs a program on several ranks, each a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).parents[3]


class Failed(Exception):
    """A rank raised, or was ended by a signal."""


def run(
    folder: Path, name: str, world: int, *args, route: str = "", limit: float = 60.0
) -> list:
    """What `programs.name(rank, world, *args)` returned at each rank.

    An exception is returned as the text of its class and message; a rank that died is
    its exit status.

    Args:
        folder: for the ranks' files.
        name: the function; "module.function" of one that is not in `programs`.
        world: how many ranks.
        args: what it is given.
        route: "gloo" sends bytes through Gloo, "mpi" through MPI, under its mpiexec,
            "nccl" through NCCL, on emulated devices.
        limit: seconds; who has not ended by then fails the test.
    """
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "python"), str(Path(__file__).parent)]
        ),
        "TAEDA_SHARED_MEMORY": "0" if route == "gloo" else "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "TAEDA_TEST_ROUTE": route,
    }
    if route == "nccl":
        env |= _emulated()
    with open(folder / "arguments", "wb") as file:
        pickle.dump((name, world, args), file)
    command = [sys.executable, __file__, str(folder)]
    if route == "mpi":
        return _run_by_mpi(command, folder, world, env, limit)
    ranks = [
        subprocess.Popen([*command, str(r)], env=env, stderr=subprocess.PIPE)
        for r in range(world)
    ]
    end = time.monotonic() + limit
    results = []
    try:
        for rank, process in enumerate(ranks):
            told = process.communicate(timeout=max(1.0, end - time.monotonic()))[1]
            path = folder / f"result.{rank}"
            if path.exists():
                results.append(pickle.loads(path.read_bytes()))
            else:
                results.append(process.returncode)
                if process.returncode > 0:
                    raise Failed(told.decode())
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    return results


def _emulated() -> dict[str, str]:
    """The devices and the NCCL of test/emulator."""
    sys.path.insert(0, str(ROOT / "tools"))
    from devtool import emulate

    found = emulate.environment()
    del found["PYTHONPATH"]
    return found


def mpiexec() -> str:
    """The launcher of this environment's MPI."""
    return str(Path(sys.prefix) / "bin" / "mpiexec")


def _run_by_mpi(command, folder: Path, world: int, env, limit: float) -> list:
    # A rank that ends without an end of MPI does not end the others.
    command = [mpiexec(), "-disable-auto-cleanup", "-n", str(world), *command]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        told = process.communicate(timeout=limit)[1]
    finally:
        process.kill()
    results = []
    for rank in range(world):
        path = folder / f"result.{rank}"
        if not path.exists():
            raise Failed(told)
        results.append(pickle.loads(path.read_bytes()))
    return results


def join(folder: str, rank: int, world: int, seconds: float = 20.0) -> None:
    """Makes the default group over a file."""
    import taeda.distributed as dist

    route = os.environ["TAEDA_TEST_ROUTE"]
    if route == "mpi":
        dist.init_process_group("mpi", timeout=timedelta(seconds=seconds))
        return
    dist.init_process_group(
        "nccl" if route == "nccl" else "gloo",
        store=dist.FileStore(os.path.join(folder, "meeting"), world),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=seconds),
    )


def is_ending(rank: int) -> None:
    """The others do not wait for this rank's result."""
    Path(f"dying.{rank}").touch()


def is_done_with(rank: int, victim: int) -> None:
    """This rank needs nothing more of one that is to die."""
    Path(f"ready{rank}for{victim}").touch()


def until_done_with(victim: int, others) -> None:
    """Waits until the others need nothing more of it."""
    while not all(Path(f"ready{other}for{victim}").exists() for other in others):
        time.sleep(0.01)


def dies(rank: int, victim: int, others) -> None:
    """The victim ends once the others have done all that needs it.

    A rank that has left a barrier does not know that the others have.
    """
    is_done_with(rank, victim)
    if rank == victim:
        until_done_with(victim, others)
        is_ending(rank)
        os.kill(os.getpid(), signal.SIGKILL)


def _is_over(folder: Path, rank: int) -> bool:
    return any((folder / f"{state}.{rank}").exists() for state in ("result", "dying"))


def _main() -> None:
    from importlib import import_module

    folder = Path(sys.argv[1])
    rank = int(sys.argv[2] if len(sys.argv) > 2 else os.environ["PMI_RANK"])
    name, world, args = pickle.loads((folder / "arguments").read_bytes())
    os.chdir(folder)
    try:
        module, _, function = name.rpartition(".")
        program = getattr(import_module(module or "programs"), function)
        result = program(rank, world, *args)
    except Exception as error:
        traceback.print_exc()
        result = f"{type(error).__name__}: {error}"
    (folder / f"new.{rank}").write_bytes(pickle.dumps(result))
    (folder / f"new.{rank}").rename(folder / f"result.{rank}")
    # A rank that has ended would be lost to those that still work.
    until = time.monotonic() + 20
    while time.monotonic() < until and "alone" not in name:
        if all(_is_over(folder, r) for r in range(world)):
            break
        time.sleep(0.01)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    _main()
