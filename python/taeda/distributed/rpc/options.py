"""What an agent is told when it starts."""

from __future__ import annotations

import math

import taeda

from . import constants

__all__ = ["RpcBackendOptions", "TensorPipeRpcBackendOptions"]


class RpcBackendOptions:
    """What every agent is told.

    Args:
        rpc_timeout: seconds for a call that says none; 0 for no limit.
        init_method: a URL where workers meet, as of `init_process_group`.

    Raises:
        RuntimeError: a negative limit.
    """

    def __init__(
        self,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
    ) -> None:
        self.rpc_timeout = rpc_timeout
        self._init_method = init_method

    @property
    def init_method(self) -> str:
        """A URL where workers meet."""
        return self._init_method

    @property
    def rpc_timeout(self) -> float:
        return self._rpc_timeout

    @rpc_timeout.setter
    def rpc_timeout(self, seconds: float) -> None:
        if not seconds >= 0 or math.isinf(seconds):
            raise RuntimeError(f"RPC Timeout must be non-negative, got {seconds}")
        self._rpc_timeout = float(seconds)


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Options of the agent over TCP, by the name that programs know.

    Args:
        num_worker_threads: how many calls of others run at once.
        rpc_timeout: seconds for a call that says none; 0 for no limit.
        init_method: a URL where workers meet.
        device_maps: worker -> {device here: device there}. Tensors travel through the
            CPU's memory, so only the CPU can stand here.
        devices: that tensors may be on, in place of `device_maps`.

    Raises:
        RuntimeError: no thread, or a negative limit.
        NotImplementedError: other devices than the CPU.
    """

    def __init__(
        self,
        *,
        num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = constants.DEFAULT_INIT_METHOD,
        device_maps: dict | None = None,
        devices: list | None = None,
        _transports: list | None = None,
        _channels: list | None = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads <= 0:
            raise RuntimeError(
                f"num_worker_threads must be positive, got {num_worker_threads}"
            )
        self._num_worker_threads = num_worker_threads
        self._device_maps: dict[str, dict] = {}
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)
        self.set_devices(devices or [])

    @property
    def num_worker_threads(self) -> int:
        """How many calls of others run at once."""
        return self._num_worker_threads

    @property
    def device_maps(self) -> dict[str, dict]:
        """Worker -> {device here: device there}."""
        return self._device_maps

    @property
    def devices(self) -> list:
        """Devices that tensors may be on."""
        return self._devices

    def set_device_map(self, to: str, device_map: dict) -> None:
        """Says on which device of a worker tensors of a device here arrive.

        Args:
            to: the worker's name.
            device_map: device here -> device there.

        Raises:
            ValueError: a device is mapped twice.
            NotImplementedError: a device other than the CPU.
        """
        known = dict(self._device_maps.get(to, {}))
        for here, there in device_map.items():
            here, there = _device(here), _device(there)
            if known.get(here, there) != there:
                raise ValueError(
                    f"device map of {to}: {here} is mapped to {known[here]} and to "
                    f"{there}"
                )
            known[here] = there
        self._device_maps[to] = known

    def set_devices(self, devices: list) -> None:
        """Says which devices tensors may be on.

        Raises:
            NotImplementedError: a device other than the CPU.
        """
        self._devices = [_device(device) for device in devices]


def _device(device):
    found = taeda.device(device)
    if found.type != "cpu":
        raise NotImplementedError(
            f"TensorPipeRpcBackendOptions: {found}: tensors of remote calls travel "
            "through the CPU's memory; call .cpu() before, and .to() after"
        )
    return found
