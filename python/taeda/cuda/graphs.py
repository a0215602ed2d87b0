"""Recorded work of GPUs, which is replayed at the cost of one launch."""

from __future__ import annotations

import taeda
from taeda._compat.unmade import unmade_class
from taeda.cuda._devices import _driver, is_available, is_initialized, synchronize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CUDAGraph",
    "GreenContext",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


def _no_green_context() -> None:
    if is_available():
        raise NotImplementedError("cuda.GreenContext is not there yet")
    raise RuntimeError("Taeda was not built with Green Context support!")


GreenContext = unmade_class("cuda.GreenContext", _no_green_context)


def is_current_stream_capturing() -> bool:
    """Whether work of the current stream is recorded into a graph rather than done."""
    if not is_initialized():
        return False
    functions = _driver()
    index = functions.current_device()
    return functions.is_capturing(index, functions.current_stream(index))


def graph_pool_handle() -> tuple[int, int]:
    """The name of a new pool of memory, for graphs that may use each other's.

    Graphs over one pool must be replayed in the order in which they were captured, one
    at a time.
    """
    functions = _driver()
    number = functions.new_pool(0, False, False)
    functions.release_pool(number)  # its users are the graphs
    return 0, number


class CUDAGraph:
    """Work that was recorded once and is replayed: the same kernels on the same memory.

    What is recorded must not wait for the GPU, nor look at what is on it. Kernels that
    draw random numbers draw new ones at each replay.

    Args:
        keep_graph: whether `raw_cuda_graph` is kept, and the graph instantiated only by
            `instantiate()` or the first replay.

    Raises:
        RuntimeError: there is no GPU.

    Example:
        >>> taeda.cuda.is_current_stream_capturing()
        False
    """

    def __init__(self, keep_graph: bool = False) -> None:
        if not is_available():
            raise RuntimeError(
                "Tried to instantiate dummy base class CUDAGraph: no GPU"
            )
        self._graph = _driver().Graph(keep_graph)
        self._dump = ""

    def capture_begin(
        self,
        pool: Any = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Record what the current stream gets from now on; `graph` does all about it.

        Args:
            pool: of another graph, or `graph_pool_handle()`; one of its own by default.
            capture_error_mode: which calls of other threads are errors meanwhile:
                "global", "thread_local" or "relaxed".
            check_input_liveness: NotImplementedError where true.

        Raises:
            RuntimeError: the stream is the default one or records already.
        """
        if check_input_liveness:
            raise NotImplementedError(
                "CUDAGraph.capture_begin: check_input_liveness is not there yet"
            )
        pool = getattr(pool, "id", pool)
        number = 0 if pool is None else tuple(pool)[1]
        self._graph.begin(number, capture_error_mode)

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: something in it cannot be recorded.
        """
        if self._graph.end() == 0:
            import warnings

            warnings.warn(
                "The CUDA graph is empty: nothing was put in its stream while it was "
                "captured",
                stacklevel=2,
            )

    def instantiate(self) -> None:
        """Make the recording ready for replays, anew where it was."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Put the recorded work at the end of the current stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Forget the recording; its memory goes when the tensors in it are gone."""
        self._graph.reset()

    def pool(self) -> tuple[int, int]:
        """The name of the pool that its memory is from."""
        return 0, self._graph.pool()

    def register_generator_state(self, generator: Any) -> None:
        """Name a generator that draws in it, besides the device's own; before the
        capture."""
        self._graph.add_generator(generator)

    def enable_debug_mode(self) -> None:
        """Nothing: what `debug_dump` prints is kept in any case."""

    def debug_dump(self, debug_path: str) -> None:
        """Write what was recorded as a graph in the dot language."""
        self._graph.dump(debug_path)

    def raw_cuda_graph(self) -> int:
        """The driver's handle of the recording; needs `keep_graph=True`."""
        return self._graph.raw_graph()

    def raw_cuda_graph_exec(self) -> int:
        """The driver's handle of what is replayed."""
        return self._graph.raw_executable()


class graph:
    """Records into a `CUDAGraph` what is done inside `with`, on a stream of its own.

    Args:
        cuda_graph: the graph.
        pool, capture_error_mode, check_input_liveness: as in
            `CUDAGraph.capture_begin`.
        stream: the stream; one for all captures by default.
        enable_annotations: NotImplementedError where true.

    Raises:
        RuntimeError: there is no GPU.
    """

    default_capture_stream: Any = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if not is_available():
            place = f"{taeda.__name__}.cuda.graph"
            raise RuntimeError(f"{place} requires CUDA support: no GPU")
        if enable_annotations:
            raise NotImplementedError("cuda.graph: enable_annotations is not there yet")
        from taeda.cuda.streams import Stream, StreamContext

        if stream is None:
            # Two threads that make one each lose one of the two.
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.capture_stream = cuda_graph, stream
        self.stream_ctx = StreamContext(stream)
        self._begin = (pool, capture_error_mode, check_input_liveness)

    def __enter__(self) -> None:
        import gc

        from taeda.cuda.memory import empty_cache

        synchronize()
        gc.collect()  # nothing may be freed by chance while the stream records
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(*self._begin)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, *args: object) -> None:
        try:
            if args and args[0] is not None:
                self.cuda_graph.reset()  # what was raised says more
            else:
                self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(None, None, None)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Functions or modules whose forward and backward passes are a graph each.

    Args:
        callables: a function or module of tensors, or a tuple of them in the order in
            which they will run.
        sample_args: a tuple of tensors for it, or a tuple of tuples; sizes, dtypes and
            `requires_grad` are those of later calls.
        num_warmup_iters: how often each runs before it is captured.
        allow_unused_input: whether an input may have no gradient.
        pool: as in `CUDAGraph.capture_begin`; one for all by default.

    Returns:
        Such functions; a module is the same one, with another `forward` for the
        `training` that it had.

    Raises:
        RuntimeError: a module with hooks, or with a buffer that requires a gradient;
            autocast that caches.
        TypeError: arguments that are no tensors.
    """
    from taeda.cuda._graphed import graphed

    return graphed(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
