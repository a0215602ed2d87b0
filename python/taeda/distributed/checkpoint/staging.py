"""Copies of a state that training cannot change any more."""

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import taeda

from .metadata import STATE_DICT_TYPE, MetadataIndex
from .utils import map_tensors

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Makes the copy that `async_save` writes.

    `stage` returns the copy, or a Future of it. If `should_synchronize_after_execute`,
    `async_save` calls `synchronize_staging` before it returns.
    """

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Is the copy waited for before `async_save` returns?"""
        return self._synchronize_after_execute

    def stage(
        self, state_dict: STATE_DICT_TYPE
    ) -> Future[STATE_DICT_TYPE] | STATE_DICT_TYPE:
        """A copy of the state, or a Future of one."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage")

    def synchronize_staging(self) -> None:
        """Waits until the state may be changed."""

    def close(self) -> None:
        """Gives back what the stager holds."""


@dataclass
class StagingOptions:
    """How DefaultStager copies.

    Attributes:
        use_pinned_memory (bool): into page-locked memory; needs a GPU.
        use_shared_memory (bool): into memory that other processes can map.
        use_async_staging (bool): in a thread, so that `stage` returns a Future.
        use_non_blocking_copy (bool): copies from a GPU are only waited for at the end;
            needs a GPU.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class Copies:
    """Copies states into the same memory again and again.

    Args:
        pinned, shared (bool): kinds of memory.
    """

    def __init__(self, pinned: bool = False, shared: bool = False) -> None:
        self.pinned, self.shared = pinned, shared
        self.kept: dict[int, taeda.Tensor] = {}

    def take(self, state_dict: STATE_DICT_TYPE, wait: bool = True) -> STATE_DICT_TYPE:
        """A copy; the one that was taken before is overwritten if the shapes fit."""
        self.order = 0
        return map_tensors(
            state_dict,
            lambda tensor: self._tensor(tensor, wait),
            lambda value: self._other(value, wait),
        )

    def _other(self, value: Any, wait: bool) -> Any:
        if not hasattr(value, "__create_write_items__"):
            return copy.deepcopy(value)
        parts = []
        for item in value.__create_write_items__("", value):
            tensor = value.__get_tensor_shard__(item.index)
            parts.append((item, self._plain(tensor, wait)))
        return StagedParts(parts)

    def _tensor(self, tensor: taeda.Tensor, wait: bool) -> Any:
        if hasattr(tensor, "to_local"):
            return spread_like(tensor, self._plain(tensor.to_local(), wait))
        return self._plain(tensor, wait)

    def _plain(self, tensor: taeda.Tensor, wait: bool) -> taeda.Tensor:
        tensor = tensor.detach()
        self.order += 1
        room = self.kept.get(self.order)
        if room is None or room.shape != tensor.shape or room.dtype != tensor.dtype:
            room = taeda.empty(tensor.shape, dtype=tensor.dtype, pin_memory=self.pinned)
            if self.shared:
                room.share_memory_()
            self.kept[self.order] = room
        room.copy_(tensor, non_blocking=not wait)
        return room


class StagedParts:
    """The parts of a value that says itself which ones it has (planner_helpers.py).

    Args:
        parts: pairs of a WriteItem without a name and a tensor.
    """

    def __init__(self, parts: list[tuple]) -> None:
        self.parts = parts

    def __create_write_items__(self, name: str, value: Any) -> list:
        return [
            replace(item, index=MetadataIndex(name, item.index.offset))
            for item, _ in self.parts
        ]

    def __get_tensor_shard__(self, index: MetadataIndex) -> taeda.Tensor:
        for item, tensor in self.parts:
            if item.index.offset == index.offset:
                return tensor
        raise ValueError(f"{index.fqn} has nothing at {index.offset} on this rank")


def spread_like(tensor: Any, local: taeda.Tensor) -> Any:
    """A tensor laid out over ranks as `tensor`, with this part of it here."""
    from taeda.distributed.tensor import DTensor

    return DTensor.from_local(
        local,
        tensor.device_mesh,
        tensor.placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )


def copied(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """A copy in memory of its own, on the CPU."""
    return Copies().take(state_dict)


class DefaultStager(AsyncStager):
    """Copies to the CPU as StagingOptions say, again into the same memory.

    Args:
        config (StagingOptions): how.

    Raises:
        AssertionError: it needs a GPU, and there is none.

    Example:
        >>> stager = DefaultStager(StagingOptions(False, False, True, False))
        >>> state = stager.stage(model.state_dict()).result()
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        config = config or StagingOptions()
        needs = config.use_pinned_memory or config.use_non_blocking_copy
        if needs and not taeda.cuda.is_available():
            raise AssertionError(
                "StagingOptions: use_pinned_memory and use_non_blocking_copy need a "
                "GPU, and there is none"
            )
        self._config = config
        self._copies = Copies(config.use_pinned_memory, config.use_shared_memory)
        self._executor = self._last = None
        if config.use_async_staging:
            self._executor = ThreadPoolExecutor(1, "checkpoint-staging")

    def stage(
        self, state_dict: STATE_DICT_TYPE, **kwargs: Any
    ) -> STATE_DICT_TYPE | Future[STATE_DICT_TYPE]:
        """The copy; a Future of it with `use_async_staging`."""
        if self._executor is None:
            return self._stage(state_dict)
        self._last = self._executor.submit(self._stage, state_dict)
        return self._last

    def _stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        later = self._config.use_non_blocking_copy
        staged = self._copies.take(state_dict, wait=not later)
        if later:
            taeda.cuda.synchronize()
        return staged

    def synchronize_staging(self) -> None:
        """Waits for the copy of the last `stage`."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Ends the thread and forgets the memory."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)
        self._copies.kept.clear()


class BlockingAsyncStager(AsyncStager):
    """Copies to the CPU at once; there is nothing to wait for afterwards.

    Args:
        cache_staged_state_dict (bool): into the same memory each time.
        type_check (bool): refuse what is neither a tensor nor plain data.
    """

    _synchronize_after_execute: bool = False

    def __init__(
        self, cache_staged_state_dict: bool = False, type_check: bool = False
    ) -> None:
        self.cache_staged_state_dict = cache_staged_state_dict
        self.type_check = type_check
        self._copies = Copies()

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        """A copy of the state on the CPU."""
        if self.type_check:
            map_tensors(state_dict, lambda tensor: tensor, _plain_data)
        copies = self._copies if self.cache_staged_state_dict else Copies()
        return copies.take(state_dict)

    def synchronize_staging(self) -> None:
        """Nothing: `stage` has waited."""

    def close(self) -> None:
        """Forgets the memory."""
        self._copies.kept.clear()


def _plain_data(value: Any) -> None:
    if not isinstance(value, (int, float, str, bytes, bool, complex, type(None))):
        raise TypeError(
            f"Unexpected value type {type(value).__name__}: neither a tensor nor data"
        )
