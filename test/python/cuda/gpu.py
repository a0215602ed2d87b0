"""A real GPU through the driver's functions, for kernels' texts alone.

Where there is none, `missing()` says why; tests that need one are left out with it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from nvrtc import Program

Address = int
# The CPU's kernels do not make one operation of a * b + c, so numbers agree.
UNCONTRACTED = ("--fmad=false",)
_MAJOR, _MINOR, _PROCESSORS = 75, 76, 16  # CUdevice_attribute


@functools.cache
def missing() -> str:
    """Why no GPU can be used here; empty where one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no NVIDIA driver: {error}"
    status, count = driver.cuInit(0), ctypes.c_int()
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status == 0 and count.value > 0:
        return ""
    return f"no GPU: status {status}, {count.value} devices"


class Gpu:
    """The first device, with its primary context."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments) -> None:
        status = getattr(self._driver, name)(*arguments)
        assert status == 0, f"{name}: status {status}"

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, 0)
        return value.value

    @property
    def architecture(self) -> str:
        major, minor = self._attribute(_MAJOR), self._attribute(_MINOR)
        return f"sm_{major}{minor}" + ("a" if major == 9 else "")

    @property
    def processors(self) -> int:
        return self._attribute(_PROCESSORS)

    def allocate(self, size: int) -> Address:
        address = ctypes.c_uint64()
        self._call(
            "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, size))
        )
        return address.value

    def free(self, address: Address) -> None:
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: Address, host: int, size: int) -> None:
        places = (ctypes.c_uint64(address), ctypes.c_void_p(host))
        self._call("cuMemcpyHtoD_v2", *places, ctypes.c_size_t(size))

    def read(self, host: int, address: Address, size: int) -> None:
        places = (ctypes.c_void_p(host), ctypes.c_uint64(address))
        self._call("cuMemcpyDtoH_v2", *places, ctypes.c_size_t(size))

    def copy(self, to: Address, origin: Address, size: int) -> None:
        places = (ctypes.c_uint64(to), ctypes.c_uint64(origin))
        self._call("cuMemcpyDtoD_v2", *places, ctypes.c_size_t(size))

    def module(self, name: str, text: str, options: Sequence[str] = ()) -> Module:
        """The text as code for this device."""
        given = (f"--gpu-architecture={self.architecture}", *options)
        return self.load(Program(name, text, given).cubin())

    def load(self, cubin: bytes) -> Module:
        handle = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(handle), cubin)
        return Module(self, handle)

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def milliseconds(self, work) -> float:
        """What a function's launches take on the device."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        self._call("cuEventRecord", events[0], None)
        work()
        self._call("cuEventRecord", events[1], None)
        self._call("cuEventSynchronize", events[1])
        taken = ctypes.c_float()
        # CUDA 13 has no other form of it under this name.
        elapsed = getattr(self._driver, "cuEventElapsedTime_v2", None)
        elapsed = elapsed or self._driver.cuEventElapsedTime
        assert elapsed(ctypes.byref(taken), *events) == 0
        for event in events:
            self._call("cuEventDestroy_v2", event)
        return taken.value


class Module:
    """Loaded code; unloaded with the process."""

    def __init__(self, gpu: Gpu, handle: ctypes.c_void_p) -> None:
        self._gpu, self._handle = gpu, handle
        self._kernels: dict[str, ctypes.c_void_p] = {}

    def _kernel(self, name: str) -> ctypes.c_void_p:
        if name not in self._kernels:
            found = ctypes.c_void_p()
            self._gpu._call(
                "cuModuleGetFunction", ctypes.byref(found), self._handle, name.encode()
            )
            self._kernels[name] = found
        return self._kernels[name]

    def launch(
        self, kernel: str, grid: Sequence[int], block: int, arguments: Sequence
    ) -> None:
        """Starts a kernel whose arguments are ctypes values."""
        pointers = [ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments]
        self._gpu._call(
            "cuLaunchKernel",
            self._kernel(kernel),
            *(grid[0], grid[1], 1, block, 1, 1, 0, None),
            (ctypes.c_void_p * len(pointers))(*pointers),
            None,
        )


@functools.cache
def gpu() -> Gpu:
    return Gpu()
