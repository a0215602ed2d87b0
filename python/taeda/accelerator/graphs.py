"""Work of the accelerator that is recorded once and replayed."""

from __future__ import annotations

from taeda.cuda.graphs import CUDAGraph

from ._device import module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Graph"]


class Graph(CUDAGraph):
    """Work on the current stream that is recorded, and replayed as a whole.

    As a context it records what is done inside; the stream has to be another than the
    default one.

    Args:
        keep_graph: whether the recording is kept, and made ready by `instantiate()` or
            the first replay, not at the recording's end.
        pool: whose memory it takes, of another graph's `pool()`; its own by default.
        capture_error_mode: which calls of other threads are errors meanwhile:
            "default", "global", "thread_local" or "relaxed".

    Raises:
        RuntimeError: there is no accelerator.
        NotImplementedError: it is a program's own device, whose graphs are unknown.

    Example:
        >>> def recorded(step):
        ...     graph = taeda.accelerator.Graph()
        ...     with taeda.Stream(), graph:
        ...         step()
        ...     return graph  # `graph.replay()` does the step's work again
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ) -> None:
        if not hasattr(module(), "CUDAGraph"):
            raise NotImplementedError("accelerator.Graph: the device has no graphs")
        super().__init__(keep_graph)
        mode = "global" if capture_error_mode == "default" else capture_error_mode
        self._begin = (pool, mode)

    def capture_begin(self) -> None:  # type: ignore[override]
        """Record what the current stream gets from now on.

        Raises:
            RuntimeError: the stream is the default one or records already.
        """
        super().capture_begin(*self._begin)

    def debug_dump(self, path: str) -> None:  # type: ignore[override]
        """Write what was recorded as a graph in the dot language."""
        super().debug_dump(path)

    def __enter__(self) -> None:
        self.capture_begin()

    def __exit__(self, *exc_info: Any) -> None:
        if exc_info[0] is not None:
            self.reset()  # what was raised says more
        else:
            self.capture_end()
