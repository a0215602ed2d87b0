"""One pass over a loader, in this process or through workers."""

from __future__ import annotations

import os
import select
import time

import taeda
from taeda.utils.data._utils.fetch import make_fetcher
from taeda.utils.data._utils.interrupts import Deaf, Undisturbed
from taeda.utils.data._utils.pipes import settle, share
from taeda.utils.data.dataset import is_pipe
from taeda.utils.data.sampler import drawn_seed

_JOIN_SECONDS = 5.0  # for the exit code of a process that has ended
_GRACE_SECONDS = 1.0  # for workers to finish what they are at, and to be stopped


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
        self._shared_seed = _settled(loader)
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
            f"{self._yielded} samples have been fetched. For multiprocessing "
            "data-loading, this is so where workers give the same samples: each must "
            "give its own part, see `get_worker_info`.",
            stacklevel=3,
        )

    def __getstate__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


def _settled(loader) -> int | None:
    """Draws what settles the random orders of a pipe; None for other datasets."""
    if not is_pipe(loader.dataset):
        return None
    seed = drawn_seed(loader.generator)
    settle(loader.dataset, seed)
    return seed


def _has_accelerator() -> bool:
    return taeda.cuda.is_available()


class SingleProcessIterator(BaseIterator):
    """Batches made in this process."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        share(loader.dataset, 1, 0)
        self._fetcher = make_fetcher(*self._fetching)

    def _fetch(self):
        return self._fetcher(next(self._indices))


class _Worker:
    """The loader's side of one worker."""

    def __init__(self, number: int, process, channel) -> None:
        self.number, self.process, self.channel = number, process, channel
        self.active = True  # has samples left in this pass
        # Readable once the process has ended. Its socket may stay open: in a process
        # that another thread forked meanwhile. So may the pipe behind `sentinel`.
        try:
            self.end = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            self.end = os.dup(process.sentinel)

    def close(self) -> None:
        """Tell the worker to end."""
        self.channel.close()
        os.close(self.end)

    def died(self):
        """Raise the error of a worker that ended or closed its connection."""
        limit = time.monotonic() + _JOIN_SECONDS
        while self.process.exitcode is None and time.monotonic() < limit:
            self.process.join(0.05)
        code = self.process.exitcode
        if code is None:
            end = "closed its connection"
        elif code < 0:
            import signal

            name = signal.strsignal(-code) or f"signal {-code}"
            end = f"is killed by signal: {name} (exit code {code}). "
            if -code in (signal.SIGKILL, signal.SIGBUS):
                end += "It may have run out of memory."
        else:
            end = f"exited unexpectedly with code {code}"
        raise RuntimeError(
            f"DataLoader worker {self.number} (pid {self.process.pid}) {end}"
        )


def _still_alive(processes: list) -> list:
    """Those of the processes that go on after the grace that all have together."""
    limit = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        process.join(max(0.0, limit - time.monotonic()))
    return [process for process in processes if process.is_alive()]


class WorkersIterator(BaseIterator):
    """Batches made by worker processes, a few of them ahead.

    Task n goes to the workers in turn, and batches come out in the order of tasks
    (unless `in_order` is off), whoever is ready first. An iterator is for one thread
    at a time; different ones have nothing in common.
    """

    def __init__(self, loader) -> None:
        super().__init__(loader)
        self._workers: list[_Worker] = []
        self._poll = select.poll()
        self._epoch = (0, self._shared_seed)
        try:
            for number in range(loader.num_workers):
                with Undisturbed():
                    self._start(number)
            # Not used: PyTorch draws once more here, and so has us draw.
            _settled(loader)
            self._begin()
        except BaseException:
            self.close()
            raise

    def _start(self, number: int) -> None:
        import multiprocessing

        from taeda.utils.data._utils.channel import Channel, pair
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
        ours, theirs = pair()
        forks = context.get_start_method() == "fork"
        others = [ours.fileno()] if forks else []
        for worker in self._workers if forks else ():
            others += [worker.channel.fileno(), worker.end]
        args = (theirs, others, job)
        process = context.Process(target=main, args=args, daemon=True)
        try:
            with Deaf():
                process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = _Worker(number, process, Channel(ours))
        self._workers.append(worker)
        self._poll.register(ours, select.POLLIN)
        self._poll.register(worker.end, select.POLLIN)

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
        self._epoch = (self._epoch[0] + 1, _settled(self._loader))
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
            worker = self._workers[self._turn]
            self._turn = (self._turn + 1) % count
            if worker.active:
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        task = self._next_task
        self._next_task += 1
        self._owner[task] = worker.number
        try:
            with Undisturbed():
                worker.channel.send(((self._epoch, task), indices))
        except ConnectionError:
            worker.died()

    def _fetch(self):
        try:
            reply = self._next_reply()
        except StopIteration:
            if not self._loader.persistent_workers:
                self.close()
            raise
        except BaseException:
            # Ctrl-C or a failure: leave no process behind, and no batches. A second
            # Ctrl-C is raised at the end of what it must not disturb.
            try:
                self._loader._forget(self)
            finally:
                self.close()
            raise
        kind, data = reply
        if kind == "error":
            data.reraise()
        return data

    def _next_reply(self) -> tuple:
        while True:
            task = self._ready_task()
            if task is None:
                if not self._owner:
                    raise StopIteration
                if not self._workers:
                    raise RuntimeError("DataLoader: the workers of this pass are gone")
                self._receive_some()
                continue
            reply = self._done.pop(task)
            self._next_out += 1
            if reply[0] != "end":
                self._assign()
                return reply

    def _ready_task(self) -> int | None:
        if self._loader.in_order:
            return self._next_out if self._next_out in self._done else None
        return next(iter(self._done), None)

    def _receive_some(self) -> None:
        timeout = self._loader.timeout
        for worker in self._workers:
            channel = worker.channel
            out = select.POLLOUT if channel.waits else 0
            self._poll.modify(channel, select.POLLIN | out)
        events = dict(self._poll.poll(1000 * timeout if timeout > 0 else None))
        if not events:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        with Undisturbed():  # descriptors on their way belong to nobody yet
            self._serve(events)

    def _serve(self, events: dict[int, int]) -> None:
        """Send and receive what can be without waiting."""
        for worker in self._workers:
            seen = events.get(worker.channel.fileno(), 0)
            try:
                if seen & select.POLLOUT:
                    worker.channel.flush()
                if seen & ~select.POLLOUT:
                    self._receive(worker)
                elif worker.end in events and not worker.channel.ready(0):
                    worker.died()
            except (EOFError, ConnectionError):
                worker.died()

    def _receive(self, worker: _Worker) -> None:
        kind, (epoch, task), data = worker.channel.receive()
        if epoch != self._epoch:
            return  # of a pass that was broken off
        self._owner.pop(task, None)
        if kind == "end" and worker.active:
            worker.active = False
            self._assign()
        self._done[task] = kind, data

    def close(self) -> None:
        """End the workers: they see their sockets close; the slow ones are stopped."""
        with Undisturbed():
            self._end_workers()

    _shutdown_workers = close  # the name that programs know

    def _end_workers(self) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()
        left = _still_alive([worker.process for worker in workers])
        for process in left:
            process.terminate()
        for process in _still_alive(left):
            process.kill()
            process.join()

    def __del__(self) -> None:
        pid = os.getpid() if os is not None else None
        # Not by `__dict__`: a dict that is made here is none of the garbage that is
        # being collected, and would keep it until the next time.
        if getattr(self, "_workers", None) and pid == self._pid():
            with Undisturbed(finalizer=True):
                self._end_workers()

    def _pid(self) -> int:
        return self._workers[0].process._parent_pid
