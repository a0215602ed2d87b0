"""Modules whose activations are computed again, or kept elsewhere, until backward.

The wrappers leave no trace in names: `named_parameters` and state dicts are those of
the wrapped module.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import partial

from taeda.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """How it is computed again, see `taeda.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another that looks like it.

    Args:
        mod: the other.
    """

    def __init__(self, mod) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self._register_load_state_dict_pre_hook(
            self._pre_load_state_dict_hook, with_module=True
        )

    def forward(self, *args, **kwargs):
        """Each kind of wrapper has its own.

        Raises:
            ValueError: here.
        """
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _CHECKPOINT_WRAPPED_MODULE:
                raise
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int):
        """That of the wrapped module."""
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """As the wrapped module's."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(module, state_dict, prefix, *args):
        """Takes the wrapper's part out of names."""
        inner = prefix + _CHECKPOINT_PREFIX
        for key in [key for key in state_dict if key.startswith(inner)]:
            state_dict[prefix + key[len(inner) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(module, state_dict, prefix, *args) -> None:
        """Puts it back into them."""
        for key in [key for key in state_dict if key.startswith(prefix)]:
            new = prefix + _CHECKPOINT_PREFIX + key[len(prefix) :]
            state_dict[new] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """Keeps what is saved for backward on the CPU."""

    def forward(self, *args, **kwargs):
        from taeda.autograd.graph import save_on_cpu

        inner = self._checkpoint_wrapped_module
        with save_on_cpu(pin_memory=True):
            result = inner(*args, **kwargs)
        return result


class CheckpointWrapper(ActivationWrapper):
    """Computes what is saved for backward again; made by `checkpoint_wrapper`."""

    def __init__(
        self,
        mod,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            from taeda.utils.checkpoint import checkpoint as checkpoint_fn

            reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            checkpoint_fn_kwargs["use_reentrant"] = reentrant
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        inner = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(inner, *args, **kwargs)
        # Reentrance passes positions alone.
        names = list(kwargs)

        def by_position(*values):
            first = len(values) - len(names)
            named = dict(zip(names, values[first:], strict=True))
            return inner(*values[:first], **named)

        return self.checkpoint_fn(by_position, *args, *kwargs.values())


def offload_wrapper(module) -> Module:
    """The module, with what it saves for backward on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs,
) -> Module:
    """The module, with what it saves for backward computed again.

    Args:
        module: it.
        checkpoint_impl: in which way.
        checkpoint_fn: in place of `taeda.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: its further arguments.
    """
    given = module, checkpoint_impl, checkpoint_fn
    return CheckpointWrapper(*given, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model,
    checkpoint_wrapper_fn: Callable = checkpoint_wrapper,
    check_fn: Callable = lambda _: True,
    auto_wrap_policy: Callable | None = None,
) -> None:
    """Wraps modules below a model, in place; not the model itself.

    Args:
        model: it.
        checkpoint_wrapper_fn: a function of a module that returns it wrapped.
        check_fn: whether to wrap a module.
        auto_wrap_policy: in place of `check_fn`; see `taeda.distributed.fsdp.wrap`.
    """
    from taeda.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_below

    policy = auto_wrap_policy
    if policy is None:
        policy = partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_below(model, policy, checkpoint_wrapper_fn, set(), set(), {})
