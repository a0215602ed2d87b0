"""Passes over loaders until something happens; tells what did, and what is left.

Reads a case (JSON, see `soak_cases.py`) from each line of its input. Answers with two
lines: the processes that Python keeps, once it begins, and how it ended. SIGUSR1 asks
it to end after the pass that it is at.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import taeda
from taeda.utils import data

SAMPLES = 24
LARGE = 3 * 96 * 96  # elements: a batch of such gets memory of its own
TIMEOUT = 1.5  # of a loader whose worker is stopped

asked_to_end = False


class Rows(data.Dataset):
    """Samples that take a random time to make."""

    def __init__(self, size: int, seconds: float) -> None:
        self.size, self.seconds = size, seconds

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int):
        time.sleep(random.random() * self.seconds)
        return taeda.full((self.size,), float(index))


class Stream(data.IterableDataset):
    """The same samples, each from the worker whose turn it is."""

    def __init__(self, size: int, seconds: float) -> None:
        self.rows = Rows(size, seconds)

    def __iter__(self):
        info = data.get_worker_info()
        for index in range(info.id, SAMPLES, info.num_workers):
            yield self.rows[index]


class Wrong(Exception):
    """A pass gave other values than those of its samples."""


def loader_of(case: dict) -> data.DataLoader:
    """The loader that a case asks for."""
    kind = Stream if case["stream"] else Rows
    return data.DataLoader(
        kind(LARGE if case["large"] else 4, case["seconds"]),
        batch_size=case["batch"],
        num_workers=case["workers"],
        multiprocessing_context=case["method"],
        persistent_workers=case["persistent"],
        timeout=TIMEOUT if case["fault"] == "stop" else 0,
    )


def one_pass(loader, case: dict, broken_off: bool) -> None:
    """All samples, or a few; Wrong unless each came once with its values."""
    seen = []
    for batch in loader:
        values = batch[:, 0].tolist()
        if not bool((batch == batch[:, :1]).all()):
            raise Wrong(f"a batch of {values} has other numbers in it")
        seen += values
        if broken_off and len(seen) >= SAMPLES // 2:
            return
    if sorted(seen) != [float(i) for i in range(SAMPLES)]:
        raise Wrong(f"a pass gave {sorted(seen)}")


def passes(case: dict, told: dict) -> None:
    """Passes until the end is asked for; counts those that ended."""
    loader = None
    while not asked_to_end:
        if loader is None or not case["persistent"]:
            loader = loader_of(case)
        one_pass(loader, case, case["broken_off"] and told["passes"] % 2 == 1)
        told["passes"] += 1
        told["last"] = time.monotonic()


def children() -> set[int]:
    """Processes that this one started and has not waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(p) for t in tasks for p in (t / "children").read_text().split()}


def held() -> dict[str, list]:
    """What a loader might leave: descriptors, threads, processes and memory."""
    files = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            files[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # of the listing itself
    maps = Path("/proc/self/maps").read_text().splitlines()
    return {
        "descriptors": sorted(f"{n} {where}" for n, where in files.items()),
        "threads": sorted(os.listdir("/proc/self/task")),
        "python threads": sorted(t.name for t in threading.enumerate()),
        "processes": sorted(children()),
        "memory": [line for line in maps if "taeda-batch" in line],
        "shared memory": sorted(Path("/dev/shm").glob(f"taeda-{os.getpid()}-*")),
    }


def left(before: dict[str, list]) -> dict[str, list]:
    """What is held now and was not before."""
    gc.collect()
    now = held()
    more = {k: [x for x in now[k] if x not in before[k]] for k in now}
    return {kind: things for kind, things in more.items() if things}


def run(case: dict) -> dict:
    """One case, from its first pass to what is left after it."""
    global asked_to_end
    asked_to_end = True
    # Whatever Python itself keeps for a way of starting processes is there after it.
    one_pass(loader_of({**case, "fault": "none"}), case, broken_off=False)
    gc.collect()
    before, told = held(), {"passes": 0, "error": None}
    asked_to_end = False
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            tell({"others": before["processes"]})
            passes(case, told)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except BaseException as error:
        told["error"] = f"{type(error).__name__}: {error}"
        error.__traceback__ = error.__context__ = None
    told["at"] = time.monotonic()
    return told | {"left": left(before)}


def tell(line: dict) -> None:
    """One line to whoever asked."""
    print(json.dumps(line), flush=True)


def ask_to_end(*_) -> None:
    """The handler of SIGUSR1."""
    global asked_to_end
    asked_to_end = True


def main() -> None:
    """Cases from the input, one after the other."""
    signal.signal(signal.SIGUSR1, ask_to_end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        tell(run(json.loads(line)))


if __name__ == "__main__":
    main()
