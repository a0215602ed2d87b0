"""What a GPU's sensors say, by NVIDIA's management library (`pynvml`)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _handle(device: Any) -> tuple[Any, Any]:
    """`pynvml`, and its handle of a device.

    Devices are found by their identity, since the library does not follow
    CUDA_VISIBLE_DEVICES.
    """
    from taeda.cuda._devices import _driver, get_device_properties, index_of

    try:
        import pynvml
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "pynvml does not seem to be installed or it can't be imported."
        ) from error
    _driver()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_DriverNotLoaded as error:
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?") from error
    uuid = get_device_properties(index_of(device)).uuid
    return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


_ASKED = """

    Args:
        device: the GPU; the current one by default.

    Raises:
        ModuleNotFoundError: `pynvml` is not installed.
        AssertionError: there is no GPU.
    """


def _sensor(name: str, text: str, read):
    """A function of a device that reads one number."""

    def sensor(device: Any = None) -> int:
        return read(*_handle(device))

    sensor.__name__ = sensor.__qualname__ = name
    sensor.__doc__ = text + _ASKED
    return sensor


device_memory_used = _sensor(
    "device_memory_used",
    "Bytes of a GPU's memory that are taken, by all processes.",
    lambda nvml, handle: nvml.nvmlDeviceGetMemoryInfo(handle).used,
)
memory_usage = _sensor(
    "memory_usage",
    "Percent of the last sampled period in which memory was read or written.",
    lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).memory,
)
utilization = _sensor(
    "utilization",
    "Percent of the last sampled period in which a kernel ran.",
    lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
)
temperature = _sensor(
    "temperature",
    "Degrees Celsius of a GPU.",
    lambda nvml, handle: nvml.nvmlDeviceGetTemperature(
        handle, nvml.NVML_TEMPERATURE_GPU
    ),
)
power_draw = _sensor(
    "power_draw",
    "Milliwatts that a GPU draws.",
    lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle),
)
clock_rate = _sensor(
    "clock_rate",
    "Megahertz of a GPU's processors.",
    lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
)
