"""One pass over a loader, in this process or through workers."""

from __future__ import annotations

import os
import time

import taeda
from taeda.utils.data._utils.fetch import make_fetcher
from taeda.utils.data.sampler import drawn_seed

_JOIN_SECONDS = 5.0  # for a process whose socket has closed
_GRACE_SECONDS = 1.0  # for workers to finish what they are at


class BaseIterator:
    """What both ways share: the order of indices and the seed of the workers."""

    def __init__(self, loader) -> None:
        self._loader = loader
        self._iterable = loader._iterable
        self._fetching = (
            loader._iterable,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        self._pin = loader.pin_memory and _has_accelerator()
        self._restart()
        # Drawn before the sampler draws its own: so PyTorch's order of batches.
        self._base_seed = drawn_seed(loader.generator)

    def _restart(self) -> None:
        self._indices = iter(self._loader._index_sampler)
        self._yielded = 0
        self._announced = self._loader._IterableDataset_len_called

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def _fetch(self):
        raise NotImplementedError

    def __next__(self):
        batch = self._fetch()
        if self._pin:
            from taeda.utils.data._utils.pin_memory import pin_memory

            batch = pin_memory(batch)
        self._yielded += 1
        if self._announced is not None and self._yielded > self._announced:
            self._warn_length()
        return batch

    def _warn_length(self) -> None:
        import warnings

        warnings.warn(
            f"Length of IterableDataset {self._loader.dataset} was reported to be "
            f"{self._announced} (when accessing len(dataloader)), but "
            f"{self._yielded} samples have been fetched. With workers, each of them "
            "must give its own part: see `get_worker_info`.",
            stacklevel=3,
        )

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


def _has_accelerator() -> bool:
    accelerator = getattr(taeda, "accelerator", None)
    if accelerator is not None:
        return accelerator.is_available()
    return taeda.cuda.is_available()


class SingleProcessIterator(BaseIterator):
    """Batches made in this process."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        self._fetcher = make_fetcher(*self._fetching)

    def _fetch(self):
        return self._fetcher(next(self._indices))


class _Worker:
    """The loader's side of one worker."""

    def __init__(self, process, channel) -> None:
        self.process, self.channel = process, channel
        self.active = True  # has samples left in this pass


class WorkersIterator(BaseIterator):
    """Batches made by worker processes, a few of them ahead.

    Task n goes to the workers in turn, and batches come out in the order of tasks
    (unless `in_order` is off), whoever is ready first.
    """

    def __init__(self, loader) -> None:
        super().__init__(loader)
        import select

        self._workers: list[_Worker] = []
        self._poll = select.poll()
        self._by_fd: dict[int, int] = {}
        self._epoch = 0
        try:
            for number in range(loader.num_workers):
                self._start(number)
        except BaseException:
            self.close()
            raise
        self._begin()

    def _start(self, number: int) -> None:
        import multiprocessing
        import select

        from taeda.utils.data._utils import transfer
        from taeda.utils.data._utils.worker import Job, main

        loader = self._loader
        context = loader.multiprocessing_context or multiprocessing.get_context()
        job = Job(
            worker_id=number,
            num_workers=loader.num_workers,
            base_seed=self._base_seed,
            dataset=loader.dataset,
            worker_init_fn=loader.worker_init_fn,
            fetching=self._fetching,
        )
        ours, theirs = transfer.pair()
        forks = context.get_start_method() == "fork"
        others = [w.channel.sock for w in self._workers] + [ours] if forks else []
        args = (theirs, others, job)
        process = context.Process(target=main, args=args, daemon=True)
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._workers.append(_Worker(process, transfer.Channel(ours)))
        self._poll.register(ours.fileno(), select.POLLIN)
        self._by_fd[ours.fileno()] = number

    def _restart(self) -> None:
        super()._restart()
        self._done: dict[int, tuple] = {}  # task -> reply that came early
        # Task -> worker until its reply; every task has one, at the end "end".
        self._owner: dict[int, int] = {}
        self._next_task = self._next_out = 0
        self._turn = 0

    def reset(self) -> None:
        """Begin another pass with the same workers."""
        self._restart()
        self._epoch += 1
        for worker in self._workers:
            worker.active = True
        self._begin()

    def _begin(self) -> None:
        ahead = self._loader.prefetch_factor * len(self._workers)
        for _ in range(max(ahead, 1)):
            self._assign()

    def _assign(self) -> None:
        """Give the next task to the next worker that has samples left."""
        count = len(self._workers)
        for _ in range(count):
            number = self._turn
            self._turn = (number + 1) % count
            if self._workers[number].active:
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        task = self._next_task
        self._next_task += 1
        self._owner[task] = number
        try:
            channel = self._workers[number].channel
            channel.send(((self._epoch, task), indices), wait=False)
        except ConnectionError:
            self._died(number)

    def _fetch(self):
        try:
            return self._fetch_reply()
        except StopIteration:
            if not self._loader.persistent_workers:
                self.close()
            raise
        except BaseException:
            # Ctrl-C or a failure: leave no process behind.
            self.close()
            self._loader._forget(self)
            raise

    def _fetch_reply(self):
        while True:
            task = self._ready_task()
            if task is None:
                if not self._owner:
                    raise StopIteration
                self._receive_some()
                continue
            kind, data = self._done.pop(task)
            self._next_out += 1
            if kind == "end":
                continue
            self._assign()
            if kind == "error":
                data.reraise()
            return data

    def _ready_task(self) -> int | None:
        if self._loader.in_order:
            return self._next_out if self._next_out in self._done else None
        return next(iter(self._done), None)

    def _receive_some(self) -> None:
        timeout = self._loader.timeout
        for worker in self._workers:
            worker.channel.flush()
        # With packets kept back, look again soon: the reader may have made room.
        kept = any(w.channel.waiting for w in self._workers)
        limit = 1000 * timeout if timeout > 0 else None
        events = self._poll.poll(10 if kept else limit)
        if not events and not kept:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        for fd, _ in events:
            self._receive(self._by_fd[fd])

    def _receive(self, number: int) -> None:
        worker = self._workers[number]
        try:
            kind, (epoch, task), data = worker.channel.receive()
        except (EOFError, ConnectionError):
            self._died(number)
        if epoch != self._epoch:
            return  # of a pass that was broken off
        self._owner.pop(task, None)
        if kind == "end" and worker.active:
            worker.active = False
            self._assign()
        self._done[task] = kind, data

    def _died(self, number: int):
        process = self._workers[number].process
        process.join(_JOIN_SECONDS)
        code = process.exitcode
        if code is not None and code < 0:
            import signal

            name = signal.strsignal(-code) or f"signal {-code}"
            end = f"is killed by signal: {name}. "
            if -code in (signal.SIGKILL, signal.SIGBUS):
                end += "It may have run out of memory."
        else:
            end = f"exited unexpectedly with code {code}"
        raise RuntimeError(f"DataLoader worker {number} (pid {process.pid}) {end}")

    def close(self) -> None:
        """End the workers: they see their sockets close; the slow ones are stopped."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.channel.close()
        limit = time.monotonic() + _GRACE_SECONDS
        for worker in workers:
            worker.process.join(max(0.0, limit - time.monotonic()))
        slow = [w.process for w in workers if w.process.is_alive()]
        for process in slow:
            process.terminate()
        for process in slow:
            process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join()

    def __del__(self) -> None:
        pid = os.getpid() if os is not None else None
        if self.__dict__.get("_workers") and pid == self._pid():
            self.close()

    def _pid(self) -> int:
        return self._workers[0].process._parent_pid
