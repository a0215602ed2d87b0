"""Where loaded storages go."""

from __future__ import annotations

import taeda

# (priority, storage -> tag or None, (storage, tag) -> storage or None)
_packages: list[tuple] = []


def register_package(priority: int, tagger, deserializer) -> None:
    """Teach save and load a device.

    Args:
        priority (int): lower comes first. tagger: storage -> tag or None.
        deserializer: (storage, tag) -> moved storage or None.

    Example:
        >>> register_package(25, lambda s: None, lambda s, tag: None)
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def location_tag(storage) -> str:
    """The tag under which a storage's device is written, as "cuda:0".

    Raises:
        RuntimeError: no package knows the device.
    """
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(
        f"don't know how to determine data location of {type(storage).__name__}"
    )


def default_restore_location(storage, location: str):
    """Move a loaded storage to the device that a tag names.

    Raises:
        RuntimeError: no package knows the tag, or the device is missing.
    """
    for _, _, restore in _packages:
        moved = restore(storage, location)
        if moved is not None:
            return moved
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} "
        f"(tagged with {str(location)[:200]})"
    )


def _accelerator(kind: str):
    def tag(storage):
        device = storage.device
        if device.type != kind:
            return None
        return kind if device.index is None else f"{kind}:{device.index}"

    def restore(storage, location):
        if location.partition(":")[0] != kind:
            return None
        module = getattr(taeda, kind, None)
        if module is None or not module.is_available():
            raise RuntimeError(
                f"Attempting to deserialize object on a {kind.upper()} device but "
                f"{taeda.__name__}.{kind}.is_available() is False. If you are running "
                "on a CPU-only machine, please use load with map_location='cpu' to map "
                "your storages to the CPU."
            )
        return storage.to(device=taeda.device(location))

    return tag, restore


def _same_device(kind: str):
    def tag(storage):
        return kind if storage.device.type == kind else None

    def restore(storage, location):
        if location.partition(":")[0] != kind:
            return None
        if kind == "meta" and storage.device.type != "meta":
            return taeda.UntypedStorage(storage.nbytes(), device="meta")
        return storage

    return tag, restore


register_package(10, *_same_device("cpu"))
for _number, _kind in enumerate(("cuda", "mps", "xpu", "hpu")):
    register_package(20 + _number, *_accelerator(_kind))
register_package(30, *_same_device("meta"))


def _of_program(function: int):
    """A part of `_accelerator` for the device that a program named, or will name."""

    def call(*args):
        return _accelerator(taeda._C._get_privateuse1_backend_name())[function](*args)

    return call


register_package(25, _of_program(0), _of_program(1))


def restorer(map_location):
    """The function (storage, location) -> storage of load's `map_location`."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):

        def by_table(storage, location):
            goal = map_location.get(location, location)
            return default_restore_location(storage, str(goal))

        return by_table
    if isinstance(map_location, (str, bytes, taeda.device)):
        goal = map_location
        goal = goal.decode() if isinstance(goal, bytes) else str(goal)
        return lambda storage, location: default_restore_location(storage, goal)

    def by_function(storage, location):
        moved = map_location(storage, location)
        if moved is None:
            moved = default_restore_location(storage, location)
        return getattr(moved, "_untyped_storage", moved)

    return by_function
