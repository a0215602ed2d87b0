"""What runs in a worker process."""

from __future__ import annotations

import os
import sys

import taeda

__all__ = ["WorkerInfo", "get_worker_info"]

# Set once, by a worker process before its first task; None in the main process.
_worker_info: WorkerInfo | None = None
_CHECK_SECONDS = 5.0


class WorkerInfo:
    """Facts on the worker that asks: `id`, `num_workers`, `seed`, `dataset`."""

    def __init__(self, **facts) -> None:
        self.__dict__.update(facts)

    def __setattr__(self, name, value) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        facts = ", ".join(f"{k}={v}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({facts})"


def get_worker_info() -> WorkerInfo | None:
    """Facts on this worker process, or None in the main process.

    Example:
        >>> info = get_worker_info()
        >>> part = range(10) if info is None else range(info.id, 10, info.num_workers)
    """
    return _worker_info


class Job:
    """What a worker is told at its start."""

    def __init__(self, **facts) -> None:
        self.__dict__.update(facts)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits: the seed of NumPy's generator in a worker."""
    import numpy

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy.random.SeedSequence(entropy).generate_state(4).tolist()


def _seed(job: Job) -> int:
    """Seed every generator, differently per worker; as PyTorch does."""
    seed = job.base_seed + job.worker_id
    random = sys.modules.get("random")
    if random is None:
        import random
    random.seed(seed)
    taeda.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_generate_state(job.base_seed, job.worker_id))
    return seed


def _until_ready(channel, parent: int) -> None:
    """Wait for a task or for room; EOFError when the main process has gone."""
    while not channel.ready(_CHECK_SECONDS):
        if os.getppid() != parent:
            raise EOFError


def main(sock, others: list[int], job: Job) -> None:
    """Fetch batches until the socket closes.

    Args:
        sock: this worker's end. others: descriptors of the loader that a fork copied.
    """
    import signal

    from taeda.utils.data._utils.channel import Channel

    # Ctrl-C reaches the whole process group; the main process decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        os.close(other)
    taeda.set_num_threads(1)
    channel = Channel(sock)
    try:
        _serve(channel, job)
    except (EOFError, ConnectionError):
        pass  # the loader is done, or gone
    finally:
        channel.close()


def _serve(channel, job: Job) -> None:
    global _worker_info
    from taeda.utils.data._utils.collate import batch_memory
    from taeda.utils.data._utils.failure import ExceptionWrapper
    from taeda.utils.data._utils.fetch import make_fetcher
    from taeda.utils.data._utils.memory import Arena
    from taeda.utils.data._utils.pipes import settle, share

    where = f"in DataLoader worker process {job.worker_id}"
    failure = fetch = None
    try:
        _worker_info = WorkerInfo(
            id=job.worker_id,
            num_workers=job.num_workers,
            seed=_seed(job),
            dataset=job.dataset,
        )
        share(job.dataset, job.num_workers, job.worker_id)
        if job.worker_init_fn is not None:
            job.worker_init_fn(job.worker_id)
    except Exception:
        failure = ExceptionWrapper(where=where)
    parent, epoch = os.getppid(), None
    while True:
        _until_ready(channel, parent)
        task, indices = channel.receive()
        if task[0] != epoch:
            epoch, fetch = task[0], None
        arena = Arena()
        batch_memory.set(arena)
        try:
            if failure is None:
                if fetch is None:
                    if epoch[1] is not None:
                        settle(job.dataset, epoch[1])
                    fetch = make_fetcher(*job.fetching)
                kind, data = "batch", fetch(indices)
            else:
                kind, data = "error", failure
        except Exception as error:
            if isinstance(error, StopIteration) and job.fetching[0]:
                kind, data = "end", None
            else:
                kind, data = "error", ExceptionWrapper(where=where)
        _reply(channel, (kind, task, data), arena, where)
        # Nothing of this batch stays here while the next one is waited for.
        del data
        arena.close()
        while channel.waits:
            _until_ready(channel, parent)
            channel.flush()


def _reply(channel, message, arena, where: str) -> None:
    from taeda.utils.data._utils.failure import ExceptionWrapper

    try:
        channel.send(message, arena)
    except (ConnectionError, EOFError):
        raise
    except Exception:
        # The batch does not pickle: say so instead of hanging.
        channel.send(("error", message[1], ExceptionWrapper(where=where)))
