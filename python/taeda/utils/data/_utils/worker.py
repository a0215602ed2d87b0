"""What runs in a worker process."""

from __future__ import annotations

import os
import sys

import taeda

__all__ = ["WorkerInfo", "get_worker_info"]

_info: WorkerInfo | None = None
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
    return _info


class Job:
    """What a worker is told at its start."""

    def __init__(self, **facts) -> None:
        self.__dict__.update(facts)


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
        low, high = job.base_seed & 0xFFFFFFFF, job.base_seed >> 32
        entropy = numpy.random.SeedSequence([job.worker_id, low, high, 0])
        numpy.random.seed(entropy.generate_state(4))
    return seed


def _await(channel, parent: int):
    """The next task; EOFError when the main process has gone."""
    import select

    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    while not poll.poll(1000 * _CHECK_SECONDS):
        if os.getppid() != parent:
            raise EOFError
    return channel.receive()


def main(sock, others, job: Job) -> None:
    """Fetch batches until the socket closes.

    Args:
        sock: this worker's end. others: sockets of the loader that a fork copied.
    """
    import signal

    from taeda.utils.data._utils import transfer

    # Ctrl-C reaches the whole process group; the main process decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    taeda.set_num_threads(1)
    transfer.start_sharing()
    channel = transfer.Channel(sock)
    try:
        _serve(channel, job)
    except (EOFError, ConnectionError):
        pass  # the loader is done, or gone
    finally:
        channel.close()


def _serve(channel, job: Job) -> None:
    global _info
    from taeda.utils.data._utils.failure import ExceptionWrapper
    from taeda.utils.data._utils.fetch import make_fetcher

    where = f"in DataLoader worker process {job.worker_id}"
    failure = fetch = None
    try:
        _info = WorkerInfo(
            id=job.worker_id,
            num_workers=job.num_workers,
            seed=_seed(job),
            dataset=job.dataset,
        )
        if job.worker_init_fn is not None:
            job.worker_init_fn(job.worker_id)
    except Exception:
        failure = ExceptionWrapper(where=where)
    parent, epoch = os.getppid(), None
    while True:
        task, indices = _await(channel, parent)
        if task[0] != epoch:
            epoch, fetch = task[0], None
        try:
            if failure is None:
                if fetch is None:
                    fetch = make_fetcher(*job.fetching)
                kind, data = "batch", fetch(indices)
            else:
                kind, data = "error", failure
        except Exception as error:
            if isinstance(error, StopIteration) and job.fetching[0]:
                kind, data = "end", None
            else:
                kind, data = "error", ExceptionWrapper(where=where)
        _reply(channel, (kind, task, data), where)
        del data


def _reply(channel, message, where: str) -> None:
    from taeda.utils.data._utils.failure import ExceptionWrapper

    try:
        channel.send(message)
    except (ConnectionError, EOFError):
        raise
    except Exception:
        # The batch does not pickle: say so instead of hanging.
        channel.send(("error", message[1], ExceptionWrapper(where=where)))
