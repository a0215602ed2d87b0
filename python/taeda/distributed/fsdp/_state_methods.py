"""The static methods of FullyShardedDataParallel about state dicts."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

from . import _optimizer_states as states
from ._states import get_type, set_type
from .api import (
    FullOptimStateDictConfig,
    OptimStateDictConfig,
    OptimStateKeyType,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["StateMethods"]


def _wrappers(model) -> list:
    from .fully_sharded_data_parallel import FullyShardedDataParallel

    return FullyShardedDataParallel.fsdp_modules(model)


def _old(name: str, new: str) -> None:
    import warnings

    warnings.warn(
        f"``FullyShardedDataParallel.{name}`` is being deprecated and is replaced by "
        f"``FullyShardedDataParallel.{new}``.",
        FutureWarning,
        stacklevel=3,
    )


class StateMethods:
    """Types of state dicts, and those of optimizers, which all ranks call."""

    @staticmethod
    def set_state_dict_type(
        module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Chooses what `state_dict` and `optim_state_dict` of the wrappers hold.

        Returns:
            What was chosen before.

        Raises:
            RuntimeError: a configuration of another type.
        """
        given = state_dict_type, state_dict_config, optim_state_dict_config
        return set_type(_wrappers(module), *given)

    @staticmethod
    def get_state_dict_type(module) -> StateDictSettings:
        """What `set_state_dict_type` chose for the wrappers in a module.

        Raises:
            AssertionError: not the same for all.
        """
        return get_type(_wrappers(module))

    @staticmethod
    @contextmanager
    def state_dict_type(
        module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ):
        """`set_state_dict_type` for a while."""
        cls = StateMethods
        given = state_dict_type, state_dict_config, optim_state_dict_config
        before = cls.set_state_dict_type(module, *given)
        with ExitStack() as stack:
            if before.state_dict_type is not None:
                fields = (
                    before.state_dict_type,
                    before.state_dict_config,
                    before.optim_state_dict_config,
                )
                stack.callback(cls.set_state_dict_type, module, *fields)
            yield

    @staticmethod
    def optim_state_dict(
        model, optim, optim_state_dict: dict[str, Any] | None = None, group=None
    ) -> dict[str, Any]:
        """The optimizer's state by the names of the unwrapped model.

        Args:
            model: wrapped, or with wrapped modules in it.
            optim: of its parameters.
            optim_state_dict: what `optim.state_dict()` returned, if it was called.
            group: whose first rank keeps it where only the first does.

        Returns:
            "state" and "param_groups", of the type that `set_state_dict_type` chose.
        """
        wrappers = _wrappers(model)
        settings = wrappers[0]._settings if wrappers else None
        config = (
            settings.optim_state_dict_config if settings else OptimStateDictConfig()
        )
        whole = (
            not settings or settings.state_dict_type is StateDictType.FULL_STATE_DICT
        )
        state = optim.state_dict() if optim_state_dict is None else optim_state_dict
        return states.gather(
            model, wrappers, optim, state, config, not whole, group=group
        )

    @staticmethod
    def optim_state_dict_to_load(
        model,
        optim,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group=None,
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, from what `optim_state_dict` returned.

        Args:
            model: wrapped, perhaps in another way and on other ranks than it was.
            optim: of its parameters.
            optim_state_dict: by names.
            is_named_optimizer: the optimizer's own state dict is by names.
            load_directly: load it as well.
            group: over which the first rank's state is sent where only it has one.
        """
        wrappers = _wrappers(model)
        config = wrappers[0]._settings.optim_state_dict_config if wrappers else None
        if getattr(config, "rank0_only", False):
            optim_state_dict = states.from_first(optim_state_dict, group)
        given = optim_state_dict, model, wrappers, optim
        found = states.to_load(*given, by_name=is_named_optimizer)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model,
        optim,
        optim_input: list[dict[str, Any]] | Iterable | None = None,
        rank0_only: bool = True,
        group=None,
    ) -> dict[str, Any]:
        """Whole states by name, at the first rank alone with `rank0_only`."""
        _old("full_optim_state_dict", "optim_state_dict")
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        given = model, _wrappers(model), optim, optim.state_dict(), config, False
        return states.gather(*given, optim_input=optim_input, group=group)

    @staticmethod
    def sharded_optim_state_dict(model, optim, group=None) -> dict[str, Any]:
        """States by name, in shards."""
        _old("sharded_optim_state_dict", "optim_state_dict")
        config = OptimStateDictConfig(offload_to_cpu=False)
        given = model, _wrappers(model), optim, optim.state_dict(), config, True
        return states.gather(*given, group=group)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any],
        model,
        optim_input: list[dict[str, Any]] | Iterable | None = None,
        optim=None,
    ) -> dict[str, Any]:
        """This rank's part of whole states, each rank having all of them."""
        _old("shard_full_optim_state_dict", "optim_state_dict_to_load")
        given = full_optim_state_dict, model, _wrappers(model), optim
        return states.to_load(*given, optim_input=optim_input)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any] | None,
        model,
        optim_input: list[dict[str, Any]] | Iterable | None = None,
        optim=None,
        group=None,
    ) -> dict[str, Any]:
        """This rank's part of whole states, which the first rank has."""
        _old("scatter_full_optim_state_dict", "optim_state_dict_to_load")
        state = states.from_first(full_optim_state_dict, group)
        return states.to_load(
            state, model, _wrappers(model), optim, optim_input=optim_input
        )

    @staticmethod
    def flatten_sharded_optim_state_dict(
        sharded_optim_state_dict: dict[str, Any], model, optim
    ) -> dict[str, Any]:
        """This rank's part, from what `sharded_optim_state_dict` returned."""
        _old("flatten_sharded_optim_state_dict", "optim_state_dict_to_load")
        given = sharded_optim_state_dict, model, _wrappers(model), optim
        return states.to_load(*given)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model,
        optim_input: list[dict[str, Any]] | Iterable | None = None,
        optim=None,
    ) -> dict[str, Any]:
        """A state of an unwrapped model by names or by numbers.

        Args:
            optim_state_dict: the state.
            optim_state_key_type: which of them the result has.
            model: not wrapped.
            optim_input, optim: the optimizer's argument, or itself.
        """
        to_names = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        return states.rekey(optim_state_dict, to_names, model, optim, optim_input)
