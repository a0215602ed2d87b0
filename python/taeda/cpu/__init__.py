"""The CPU as a device, with the interface that accelerators have."""

from __future__ import annotations

from contextvars import ContextVar, Token

from taeda._lazy import attributes

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


__getattr__ = attributes("taeda.cpu", None, ("amp",))


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """The name "cpu"."""
    return "cpu"


def set_device(device) -> None:
    """There is only one; nothing changes."""


def synchronize(device=None) -> None:
    """Operators have ended when they return; nothing is waited for."""


def get_capabilities() -> dict:
    """The processor: its name, architecture, instruction sets, cores and caches.

    Returns:
        A mapping that cannot be written. Names of instruction sets are bool;
        cache sizes are bytes; what the system does not tell is left out.

    Example:
        >>> taeda.cpu.get_capabilities()["num_logical_cores"] > 0
        True
    """
    from taeda.cpu._capabilities import capabilities

    return capabilities()


def _is_avx2_supported() -> bool:
    from taeda import _C

    return _C._cpu_capability() in ("AVX2", "AVX512")


def _is_avx512_supported() -> bool:
    from taeda import _C

    return _C._cpu_capability() == "AVX512"


# Of the processor, whatever instructions the kernels were told to use.
def _is_avx512_bf16_supported() -> bool:
    return get_capabilities().get("avx512_bf16", False)


def _is_vnni_supported() -> bool:
    return get_capabilities().get("avx512_vnni", False)


def _is_amx_tile_supported() -> bool:
    return get_capabilities().get("amx_tile", False)


def _is_amx_fp16_supported() -> bool:
    return get_capabilities().get("amx_fp16", False)


class Stream:
    """The order of work on the CPU: each operator has ended when it returns, so there
    is nothing to wait for, and one stream is like another.

    Args:
        priority: as accelerators have it; there is nothing to choose.
    """

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream) -> None:
        """Work of another stream has ended."""

    def record_event(self) -> None:
        """Work so far has ended."""

    def wait_event(self, event) -> None:
        """Work before the event has ended."""


class Event:
    """A moment in a stream."""

    def query(self) -> bool:
        """Whether work before it has ended: True."""
        return True

    def record(self, stream=None) -> None:
        """Takes the present moment."""

    def synchronize(self) -> None:
        """Work before it has ended."""

    def wait(self, stream=None) -> None:
        """Work before it has ended."""


_default_stream = Stream()
# The stream of each thread, where `stream` set one.
_current: ContextVar[Stream] = ContextVar("stream", default=_default_stream)


def current_stream(device=None) -> Stream:
    """The innermost one that `stream` set in this thread, or the process's first."""
    return _current.get()


class StreamContext:
    """Makes a stream the current one inside `with`; None leaves it."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[Token] = []

    def __enter__(self) -> None:
        self._before.append(_current.set(self.stream or _current.get()))

    def __exit__(self, type, value, traceback) -> None:
        _current.reset(self._before.pop())


def stream(stream: Stream | None) -> StreamContext:
    """The block in which a stream is the current one."""
    return StreamContext(stream)
