"""Work of the accelerator that is recorded once and replayed."""

from __future__ import annotations

from ._device import module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Graph"]


class Graph:
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
        graph = getattr(module(), "CUDAGraph", None)
        if graph is None:
            raise NotImplementedError("accelerator.Graph: the device has no graphs")
        self._graph = graph(keep_graph)
        mode = "global" if capture_error_mode == "default" else capture_error_mode
        self._begin = (pool, mode)

    def capture_begin(self) -> None:
        """Record what the current stream gets from now on.

        Raises:
            RuntimeError: the stream is the default one or records already.
        """
        self._graph.capture_begin(*self._begin)

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: something in it cannot be recorded.
        """
        self._graph.capture_end()

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
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """Keep what `debug_dump` writes."""
        self._graph.enable_debug_mode()

    def debug_dump(self, path: str) -> None:
        """Write the recording as text in the language of Graphviz."""
        self._graph.debug_dump(path)

    def __enter__(self) -> None:
        self.capture_begin()

    def __exit__(self, *exc_info: Any) -> None:
        if exc_info[0] is not None:
            self.reset()  # what was raised says more
        else:
            self.capture_end()
