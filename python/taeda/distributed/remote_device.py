"""Devices of other workers."""

from __future__ import annotations

import taeda

__all__ = ["_remote_device"]


class _remote_device:
    """A device and the worker that has it.

    Args:
        remote_device: "worker/device", "rank:0/device", "worker", or a device of this
            process; a device that is not said is the CPU.

    Raises:
        ValueError: text of another form.
        TypeError: neither text nor a device.
        RuntimeError: there is no such device.
    """

    def __init__(self, remote_device: str | taeda.device) -> None:
        self._worker_name: str | None = None
        self._rank: int | None = None
        if isinstance(remote_device, taeda.device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(
                f"Invalid type for remote_device: {type(remote_device).__name__}"
            )
        worker, slash, device = remote_device.partition("/")
        local = None if slash else _local(remote_device)
        if local is not None:
            self._device = local
            return
        kind, colon, rank = worker.partition(":")
        if not worker or "/" in device:
            raise _no_form(remote_device)
        if colon and not (kind == "rank" and rank.isdigit()):
            raise _no_form(remote_device)
        if colon:
            self._rank = int(rank)
        else:
            self._worker_name = worker
        self._device = taeda.device(device if slash else "cpu")

    def worker_name(self) -> str | None:
        """The worker's name; None for a device of this process or of a rank."""
        return self._worker_name

    def rank(self) -> int | None:
        """The worker's rank, where the device was given with one."""
        return self._rank

    def device(self) -> taeda.device:
        """The device at that worker."""
        return self._device

    def __repr__(self) -> str:
        where = self._worker_name
        if self._rank is not None:
            where = f"rank:{self._rank}"
        return f"{self._device}" if where is None else f"{where}/{self._device}"

    def _key(self) -> tuple:
        return self._worker_name, self._rank, self._device

    def __eq__(self, other) -> bool:
        return isinstance(other, _remote_device) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _local(text: str):
    try:
        return taeda.device(text)
    except RuntimeError:
        return None


def _no_form(text: str) -> ValueError:
    return ValueError(
        f"Could not parse remote_device: {text}; it is 'worker/device', "
        "'rank:0/device' or 'device'"
    )
