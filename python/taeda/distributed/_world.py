"""The groups of this process, and which backends there are."""

from __future__ import annotations

from typing import Any

from ._process_group import ProcessGroup

__all__ = ["Backend", "BackendConfig", "GroupMember", "group"]


class Backend(str):
    """A backend's name in lower case; a group's may differ by device.

    Args:
        name: "gloo", or any that was registered.

    Raises:
        ValueError: it is no text.
    """

    GLOO, FAKE, UNDEFINED = "gloo", "fake", "undefined"
    # Known by name, and refused.
    MPI, NCCL, UCC, XCCL = "mpi", "nccl", "ucc", "xccl"

    # Changed by register_backend alone, which programs call before they join.
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability = {
        GLOO: ["cpu"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu", "meta"],
    }
    backend_type_map = {
        name: getattr(ProcessGroup.BackendType, name.upper(), None)
        or ProcessGroup.BackendType.CUSTOM
        for name in backend_list
    }
    _plugins: dict[str, Any] = {}

    class _BackendPlugin:
        """How a registered backend is made."""

        def __init__(self, creator_fn, extended_api: bool) -> None:
            self.creator_fn, self.extended_api = creator_fn, extended_api

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(
                f"Backend constructor parameter must be string-ish, got {name!r}"
            )
        return getattr(Backend, name.upper(), name.lower())

    @classmethod
    def register_backend(
        cls, name: str, func, extended_api: bool = False, devices=None
    ) -> None:
        """Makes a backend known.

        Args:
            name: what programs give to `init_process_group`.
            func: called with store, rank, size and timeout; returns a backend or a
                `ProcessGroup`.
            extended_api: it is called with a description of the group, and options.
            devices: the kinds of device that it serves; all by default.

        Raises:
            RuntimeError: there is one of this name.
        """
        lower = name.lower()
        if hasattr(cls, name.upper()) and lower != cls.UCC:
            raise RuntimeError(f"{name.upper()} c10d backend already exists")
        if lower in cls._plugins:
            raise RuntimeError(f"{name.upper()} c10d backend creator already exists")
        setattr(cls, name.upper(), lower)
        cls.backend_list.append(lower)
        served = [devices] if isinstance(devices, str) else devices
        served = list(served or ["cpu", "cuda"])
        for device in devices or []:
            cls.default_device_backend_map.setdefault(device, lower)
        cls.backend_type_map[lower] = ProcessGroup.BackendType.CUSTOM
        cls.backend_capability[lower] = served
        cls._plugins[name.upper()] = cls._BackendPlugin(func, extended_api)


class BackendConfig:
    """Which backend serves which kind of device.

    Args:
        backend: one name for all devices, or "cpu:gloo,cuda:nccl".

    Raises:
        ValueError: a device without a backend, or named twice.
    """

    def __init__(self, backend: Backend) -> None:
        self.device_backend_map: dict[str, str] = {}
        if backend == Backend.UNDEFINED:
            # Of the devices that this build has.
            self.device_backend_map["cpu"] = Backend.GLOO
        elif ":" in backend:
            for pair in backend.split(","):
                device, colon, name = pair.partition(":")
                if not colon or ":" in name or not name:
                    raise ValueError(
                        f"Invalid device:backend pairing: {pair!r} in {backend!r}"
                    )
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in {backend!r}")
                self.device_backend_map[device] = Backend(name)
        else:
            name = Backend(backend)
            for device in Backend.backend_capability.get(name, ["cpu"]):
                self.device_backend_map[device] = name

    def __repr__(self) -> str:
        return ",".join(f"{d}:{b}" for d, b in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """Device kind -> backend."""
        return self.device_backend_map


class _World:
    """The groups that exist. One thread joins, makes groups and leaves."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[ProcessGroup, tuple[str, Any]] = {}
        self.pg_names: dict[ProcessGroup, str] = {}
        # Global rank -> rank in the group, in the group's order.
        self.pg_group_ranks: dict[ProcessGroup, dict[int, int]] = {}
        self.pg_backend_config: dict[ProcessGroup, str] = {}
        self.pg_to_tag: dict[ProcessGroup, str] = {}
        self.tags_to_pg: dict[str, list[ProcessGroup]] = {}
        self.group_count = 0

    def forget(self, pg: ProcessGroup) -> None:
        """Leaves out a group that is gone."""
        for table in (
            self.pg_map,
            self.pg_names,
            self.pg_group_ranks,
            self.pg_backend_config,
        ):
            table.pop(pg, None)
        tag = self.pg_to_tag.pop(pg, None)
        if tag is not None:
            self.tags_to_pg[tag].remove(pg)


_world = _World()


class _WorldMeta(type):
    """`group.WORLD`, the default group."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks; None before `init_process_group`."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default_pg = pg


class group(metaclass=_WorldMeta):
    """Holds the default group, `group.WORLD`."""


class GroupMember(metaclass=_WorldMeta):
    """What `new_group` returns to ranks that are not in the group."""

    NON_GROUP_MEMBER = -100
