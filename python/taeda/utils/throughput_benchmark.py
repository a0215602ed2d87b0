"""How many calls of a module threads get through."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us=None, time_ms=None, time_s=None) -> str:
    """A time in the unit in which it is at least 1, with three decimals.

    Raises:
        AssertionError: not exactly one of the three is given.
    """
    given = [t for t in (time_us, time_ms, time_s) if t is not None]
    if len(given) != 1:
        raise AssertionError("format_time takes one time")
    scale = 1e6 if time_s is not None else 1e3 if time_ms is not None else 1
    us = given[0] * scale
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3f}{unit}"
    return f"{us:.3f}us"


@dataclass(frozen=True)
class ExecutionStats:
    """What `ThroughputBenchmark.benchmark` measured.

    Args:
        latency_avg_ms: the mean time of a call.
        num_iters: calls of all threads.
        num_calling_threads: the threads.
    """

    latency_avg_ms: float
    num_iters: int
    num_calling_threads: int

    @property
    def total_time_seconds(self) -> float:
        """Seconds of all calls, on so many threads at once."""
        return self.num_iters * self.latency_avg_ms / 1000 / self.num_calling_threads

    @property
    def iters_per_second(self) -> float:
        """Calls of all threads in a second."""
        return self.num_iters / self.total_time_seconds

    def __str__(self) -> str:
        latency = format_time(time_ms=self.latency_avg_ms)
        return "\n".join(
            (
                f"Average latency per example: {latency}",
                f"Total number of iterations: {self.num_iters}",
                "Total number of iterations per second (across all threads): "
                f"{self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            )
        )


class ThroughputBenchmark:
    """Calls a module from several threads with inputs that were added before.

    Threads of Python take turns, except while operators compute.

    Args:
        module: a Module, or any function.
    """

    def __init__(self, module) -> None:
        self._module = module
        self._inputs: list[tuple[tuple, dict]] = []

    def add_input(self, *args, **kwargs) -> None:
        """Keeps arguments of a call."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """Calls the module with these."""
        return self._module(*args, **kwargs)

    def benchmark(
        self,
        num_calling_threads: int = 1,
        num_warmup_iters: int = 10,
        num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:
        """Calls the module with random ones of the inputs.

        Args:
            num_calling_threads: the threads.
            num_warmup_iters: calls of each thread that are not counted.
            num_iters: calls of all threads together.
            profiler_output_path: refused unless empty.

        Raises:
            RuntimeError: there are no inputs.
            NotImplementedError: a profile is asked for.
        """
        import threading
        import time
        from concurrent.futures import ThreadPoolExecutor

        if profiler_output_path:
            raise NotImplementedError("ThroughputBenchmark: profiler_output_path")
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark: no inputs; call add_input first")
        counts = [num_iters // num_calling_threads] * num_calling_threads
        counts[0] += num_iters % num_calling_threads
        ready = threading.Barrier(num_calling_threads)

        def work(count: int) -> float:
            self._call(num_warmup_iters)
            ready.wait()
            start = time.perf_counter()
            self._call(count)
            return time.perf_counter() - start

        with ThreadPoolExecutor(num_calling_threads) as pool:
            spent = sum(pool.map(work, counts))
        return ExecutionStats(1e3 * spent / num_iters, num_iters, num_calling_threads)

    def _call(self, count: int) -> None:
        import random

        import taeda

        with taeda.no_grad():
            for args, kwargs in random.choices(self._inputs, k=count):
                self._module(*args, **kwargs)
