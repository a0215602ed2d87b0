"""Batches made in worker processes: order, content, failures, what is left over."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import taeda
from taeda.utils import data

PROGRAMS = pathlib.Path(__file__).parent / "programs"
WORKERS = [0, 2]


class Squares(data.Dataset):
    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int):
        return {"x": taeda.full((2,), float(index * index)), "name": str(index)}


class Parts(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        if info is None:
            return iter(range(17))
        return iter(range(info.id, 17, info.num_workers))


class Large(data.Dataset):
    """Samples whose batches get memory of their own."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int):
        return taeda.full((3, 64, 64), float(index))


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    import multiprocessing

    assert multiprocessing.active_children() == []


def passes(tools, lib, dataset, count: int, **options) -> list:
    lib.manual_seed(7)
    loader = tools.DataLoader(dataset, num_workers=count, **options)
    return [[b.tolist() for b in batch] for _ in range(2) for batch in loader]


@pytest.mark.parametrize("count", WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_order_is_pytorchs(count, shuffle) -> None:
    import torch

    def rows(tools, lib):
        return tools.TensorDataset(lib.arange(30.0).view(15, 2), lib.arange(15))

    options = {"batch_size": 4, "shuffle": shuffle}
    mine = passes(data, taeda, rows(data, taeda), count, **options)
    its = torch.utils.data
    assert mine == passes(its, torch, rows(its, torch), 0, **options)


@pytest.mark.parametrize("count", WORKERS)
@pytest.mark.parametrize("size", [None, 1, 4])
def test_every_sample_once(count, size) -> None:
    loader = data.DataLoader(Squares(), batch_size=size, num_workers=count)
    names = []
    for batch in loader:
        names += [batch["name"]] if size is None else batch["name"]
    assert names == [str(i) for i in range(23)]


@pytest.mark.parametrize("count", WORKERS)
@pytest.mark.parametrize("size", [None, 1, 5])
def test_iterable_parts(count, size) -> None:
    seen = []
    for batch in data.DataLoader(Parts(), batch_size=size, num_workers=count):
        seen += [batch] if size is None else batch.tolist()
    assert sorted(seen) == list(range(17))


def test_large_batches_are_writable_and_hold_no_descriptor() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    loader = data.DataLoader(Large(), batch_size=4, num_workers=1)
    names = set(os.listdir("/dev/shm"))
    before = descriptors()
    kept = list(loader)
    assert descriptors() == before
    assert set(os.listdir("/dev/shm")) <= names
    for number, batch in enumerate(kept):
        assert batch.shape == (4, 3, 64, 64)
        assert batch[:, 0, 0, 0].tolist() == [4.0 * number + i for i in range(4)]
        batch.add_(1)
        assert batch[0, 2, 63, 63].item() == 4.0 * number + 1


class Kinds(data.Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int):
        wide = taeda.arange(64 * 64 * 8.0).view(64, 64, 8)
        return {
            "permuted": wide.permute(2, 0, 1),
            "sliced": wide[::2, :, 0],
            "empty": taeda.zeros(0, 3),
            "zero d": taeda.tensor(3),
            "half": taeda.ones(3, dtype=taeda.bfloat16),
            "parameter": taeda.nn.Parameter(taeda.ones(2)),
            "size": taeda.Size([2, 3]),
            "dtype": taeda.float16,
            "bytes": b"x" * 100_000,
        }


def test_every_kind_of_value_arrives() -> None:
    want = Kinds()[0]
    loader = data.DataLoader(
        Kinds(), batch_size=None, num_workers=1, collate_fn=lambda sample: sample
    )
    (have,) = loader
    assert list(have) == list(want)
    for key, value in want.items():
        got = have[key]
        assert type(got) is type(value), key
        if isinstance(value, taeda.Tensor):
            assert got.dtype == value.dtype
            assert got.tolist() == value.tolist()
            assert got.requires_grad == value.requires_grad
        else:
            assert got == value
    assert have["permuted"].stride() == want["permuted"].stride()


def test_workers_are_seeded_apart_and_alike() -> None:
    class Draw(data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int):
            return taeda.rand(1).item()

    def run() -> list:
        taeda.manual_seed(3)
        loader = data.DataLoader(Draw(), batch_size=None, num_workers=2)
        return [list(loader), list(loader)]

    first = run()
    assert first == run()
    assert len({*first[0], *first[1]}) == 8


def test_init_function_and_worker_info() -> None:
    class Facts(data.Dataset):
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int):
            info = data.get_worker_info()
            return [info.id, info.num_workers, os.environ["TAEDA_TEST_WORKER"]]

    def note(number: int) -> None:
        os.environ["TAEDA_TEST_WORKER"] = f"worker {number}"

    loader = data.DataLoader(
        Facts(), batch_size=None, num_workers=2, worker_init_fn=note
    )
    assert list(loader) == [[0, 2, "worker 0"], [1, 2, "worker 1"]]
    assert data.get_worker_info() is None
    assert "TAEDA_TEST_WORKER" not in os.environ


def test_persistent_workers_stay() -> None:
    class Pid(data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int):
            return os.getpid()

    loader = data.DataLoader(
        Pid(), batch_size=None, num_workers=2, persistent_workers=True
    )
    first = set(loader)
    next(iter(loader))  # a pass that is broken off
    assert set(loader) == first
    loader._iterator._shutdown_workers()


def test_batches_out_of_order() -> None:
    class Uneven(data.Dataset):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int):
            time.sleep(0.3 if index == 0 else 0)
            return index

    loader = data.DataLoader(Uneven(), batch_size=None, num_workers=2, in_order=False)
    seen = list(loader)
    assert sorted(seen) == list(range(6))
    assert seen[0] != 0


class Failing(data.Dataset):
    def __init__(self, act) -> None:
        self.act = act

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int):
        return self.act() if index == 5 else index


def raise_key():
    raise KeyError("lost")


def raise_odd():
    class Odd(Exception):
        def __init__(self, one, two) -> None:
            super().__init__(one, two)

    raise Odd(1, 2)


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


def exit_self():
    os._exit(3)


def unpicklable():
    return lambda: None


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (raise_key, KeyError, "(?s)worker process 1.*Original Traceback.*raise_key"),
        (raise_odd, RuntimeError, "Caught Odd in DataLoader worker process 1"),
        (
            kill_self,
            RuntimeError,
            r"worker 1 \(pid \d+\) is killed by signal: Killed \(exit code -9\)",
        ),
        (exit_self, RuntimeError, r"worker 1 \(pid \d+\) exited .* with code 3"),
        (unpicklable, Exception, "(?s)worker process 1.*pickle"),
    ],
)
def test_a_failing_worker_is_an_error(act, kind, text) -> None:
    started = time.monotonic()
    with pytest.raises(kind, match=text):
        list(data.DataLoader(Failing(act), batch_size=None, num_workers=2))
    assert time.monotonic() - started < 10


def test_a_pass_goes_on_after_an_error() -> None:
    loader = data.DataLoader(Failing(raise_key), batch_size=None, num_workers=2)
    iterator, seen = iter(loader), []
    while len(seen) < 7:
        try:
            seen.append(next(iterator))
        except KeyError:
            seen.append("error")
    assert seen == [0, 1, 2, 3, 4, "error", 6]
    assert list(iterator) == [7]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_way_to_start_a_worker(method) -> None:
    program = [sys.executable, str(PROGRAMS / "start_methods.py"), method]
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert text.split("\n") == ["0 1 2 3", "4 5 6 7", "8 9 10 11", ""]


def test_an_error_of_the_init_function() -> None:
    def fail(number: int) -> None:
        raise ValueError(f"no {number}")

    loader = data.DataLoader(Squares(), num_workers=1, worker_init_fn=fail)
    with pytest.raises(ValueError, match="no 0"):
        next(iter(loader))


def test_time_out() -> None:
    loader = data.DataLoader(
        Failing(lambda: time.sleep(30)), batch_size=None, num_workers=1, timeout=0.5
    )
    with pytest.raises(RuntimeError, match="timed out after 0.5 seconds"):
        list(loader)


def test_breaking_off_ends_the_workers() -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = files()
    iterator = iter(data.DataLoader(Large(), batch_size=2, num_workers=2))
    next(iterator)
    processes = [w.process for w in iterator._workers]
    assert files() > before
    del iterator
    assert not any(p.is_alive() for p in processes)
    del processes  # each has descriptors of its own
    assert files() == before
    assert "taeda-batch" not in pathlib.Path("/proc/self/maps").read_text()


def start(method: str):
    program = [sys.executable, str(PROGRAMS / "slow_loader.py"), method]
    running = subprocess.Popen(
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Started in the background, a shell's children would ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    workers = running.stdout.readline().split()
    assert len(workers) == 2
    return running, [int(w) for w in workers]


def gone(pid: int) -> bool:
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return text.rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_orphans(method, number) -> None:
    running, workers = start(method)
    if number == signal.SIGINT:
        os.killpg(running.pid, number)  # as Ctrl-C in a terminal
    else:
        running.send_signal(number)
    _, errors = running.communicate(timeout=30)
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    limit = time.monotonic() + 10
    while not all(map(gone, workers)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert all(map(gone, workers))


def test_more_workers_than_processors_are_warned_of(monkeypatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    with pytest.warns(UserWarning, match="excessive worker creation might get"):
        data.DataLoader([1, 2], num_workers=2)
