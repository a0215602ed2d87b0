"""A device that this build does not use.

The text is executed once for each line of `table.DEVICES`, as the module of that name
(`taeda.xpu`), and keeps what the line names: so `__module__` of each function is right,
and `hasattr` tells what PyTorch's module of that device has.
"""

from __future__ import annotations

from taeda._compat.table import DEVICES


def is_available() -> bool:
    """Whether a device can be used: not in this build."""
    return False


def is_initialized() -> bool:
    """Whether the devices have been set up: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16."""
    return False


def device_count() -> int:
    """The number of devices that can be used."""
    return 0


def empty_cache() -> None:
    """Gives cached memory back; there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator, once there is one."""


def memory_allocated(device=None) -> int:
    """Bytes of the device's memory in use."""
    return 0


def current_allocated_memory() -> int:
    """Bytes of the device's memory in use."""
    return 0


def reset_peak_memory_stats(device=None) -> None:
    """Restarts the count of the largest memory use."""


def record_memory_history(
    enabled: str | None = "all", stacks: str = "python", max_entries: int = 0
) -> None:
    """Notes who asks for the device's memory, of which none is used."""


def memory_stats(device=None) -> dict:
    """Counts of the device's memory, of which none is used."""
    return {}


def get_arch_list() -> list[str]:
    """The devices that this build was compiled for."""
    return []


def get_gencode_flags() -> str:
    """The flags with which it was compiled for them."""
    return ""


def is_tf32_supported() -> bool:
    """Whether the device has units for TF32."""
    return False


def get_rng_state_all() -> list:
    """The states of all devices' generators."""
    return []


def set_rng_state_all(new_states) -> None:
    """States for the generators of devices: they wait for devices to be set up, which
    never happens on this build, as in PyTorch."""


def seed() -> None:
    """A random seed for the current device's generator, once there is one."""


# The devices' generators.
default_generators: tuple = ()


# The device's module without the library's name, which as_torch replaces later.
_path = __name__.removeprefix("taeda.")


def _upper() -> str:
    return _path.partition(".")[0].upper()


def _no_device(*args, **kwargs):
    raise AssertionError(
        f"Taeda not compiled with {_upper()} enabled: no GPU can be used"
    )


def _without(what: str, parameters: str = "*args,**kwargs", name: str = ""):
    """A function whose PyTorch twin says which of its parts needs the device."""
    from taeda._compat.unmade import refusing_function

    def fail():
        raise RuntimeError(f"Cannot execute {what}() without {_upper()} backend.")

    path = f"{_path}.{name or what}"
    return refusing_function(
        path, parameters, fail, "Raises RuntimeError: there is no such device."
    )


def is_current_stream_capturing() -> bool:
    """Whether work is recorded in place of being done.

    Raises:
        RuntimeError: there is no device to ask.
    """
    raise RuntimeError(
        "Tried to instantiate dummy base class _xpu_isCurrentStreamCapturing: this "
        "build of taeda does not use such a device"
    )


def change_current_allocator(allocator) -> None:
    """Lets another allocator give the device's memory.

    Raises:
        AssertionError: there is no device.
    """
    _no_device()


def compile_shader(source: str):
    """Compiles a kernel in Apple's shading language.

    Raises:
        RuntimeError: there is no device.
    """
    raise RuntimeError(f"{_upper()} is not available")


def load_metallib(path):
    """Reads compiled kernels.

    Raises:
        RuntimeError: there is no device.
    """
    raise RuntimeError(f"{_upper()} is not available")


def set_per_process_memory_fraction(fraction: float) -> None:
    """Takes at most this share of the device's memory.

    Raises:
        TypeError: not a float.
        ValueError: outside of 0 to 2.
        RuntimeError: there is no device.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    _without("setMemoryFraction")()


def start(mode: str = "interval", wait_until_completed: bool = False) -> None:
    """Begins to mark work for Apple's tools.

    Raises:
        RuntimeError: there is no device.
    """
    _without("profilerStartTrace")()


def stop() -> None:
    """Ends it.

    Raises:
        RuntimeError: there is no device.
    """
    _without("profilerStopTrace")()


class profile:
    """Marks the work of a block for Apple's tools; entering raises RuntimeError."""

    def __init__(self, mode: str = "interval", wait_until_completed: bool = False):
        self._options = mode, wait_until_completed

    def __enter__(self) -> None:
        start(*self._options)

    def __exit__(self, *exc_info) -> None:
        stop()


def is_metal_capture_enabled() -> bool:
    """Whether work can be captured for Apple's tools: no."""
    return False


def is_capturing_metal() -> bool:
    """Whether it is: no."""
    return False


class StreamContext:
    """Makes a stream the current one inside `with`; None leaves all as it is."""

    def __init__(self, stream) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _no_device()

    def __exit__(self, type, value, traceback) -> None:
        return None


def stream(stream) -> StreamContext:
    """A context in which a stream is the current one; None changes nothing."""
    return StreamContext(stream)


class use_mem_pool:
    """Takes memory from a pool inside `with`; entering raises AssertionError."""

    def __init__(self, pool, device=None) -> None:
        self.pool = pool

    def __enter__(self) -> None:
        _no_device()

    def __exit__(self, *exc_info) -> None:
        return None


class XPUPluggableAllocator:
    """An allocator of device memory, of a shared library's functions.

    Args:
        path_to_lib_file: the library.
        alloc_fn_name, free_fn_name: its functions.

    Raises:
        OSError: the library cannot be loaded.
        AttributeError: it has no such function.
        AssertionError: there is no device whose memory it could give.
    """

    def __init__(self, path_to_lib_file: str, alloc_fn_name: str, free_fn_name: str):
        import ctypes

        library = ctypes.CDLL(path_to_lib_file)
        for name in (alloc_fn_name, free_fn_name):
            getattr(library, name)
        _no_device()

    def allocator(self) -> None:
        """The native object; none was made."""
        return _no_device()


class device:
    """Makes a device the current one inside `with`; -1 and None leave all as it is."""

    def __init__(self, device) -> None:
        if device is not None and device != -1:
            _no_device()

    def __enter__(self) -> None:
        return None

    def __exit__(self, type, value, traceback) -> None:
        return None


class device_of(device):
    """Makes a tensor's device the current one inside `with`; others change nothing."""

    def __init__(self, obj) -> None:
        super().__init__(
            obj.get_device() if obj.device.type == _upper().lower() else -1
        )


# The part of a device that PyTorch names where such a class is made.
_PARTS = {
    "mps.Event": "acquireEvent",
    "mtia.MTIAGraph": "mtiagraphCreate",
    "mtia.graph": "getCurrentDevice",
}


def _kept(line: str, defined: dict) -> dict:
    """The names of a line, and what each stands for among `defined` or the classes."""
    import sys

    from taeda._compat.unmade import CLASSES, unmade_class

    kept = {}
    outer = vars(sys.modules[__name__.rpartition(".")[0]])
    for entry in line.split():
        name, _, same = entry.partition("=")
        name, refuses, part = name.partition("!")
        path = f"{_path}.{name}"
        if refuses:
            kept[name] = _without(part, name=name) if part else _no_device
        elif __name__.count(".") > 1 and name in outer:
            kept[name] = outer[name]  # `taeda.xpu.streams` shows those of `taeda.xpu`
        elif path in CLASSES:
            part = _PARTS.get(path)
            fail = _without(part) if part else None
            kept[name] = unmade_class(path, fail)
        else:
            kept[name] = defined[same or name]
    return kept


_line = DEVICES.get(_path)
if _line is not None:
    from taeda._lazy import attributes as _attributes

    __getattr__ = _attributes(__name__)
    _names = _kept(_line[1], globals())
    __doc__ = f"{_line[0]}, which this build does not use."
    __all__ = [name for name, value in _names.items() if value is not _no_device]
    for _name in [name for name in globals() if not name.startswith("_")]:
        del globals()[_name]
    globals().update(_names)
