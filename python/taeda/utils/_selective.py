"""Checkpointing that keeps the results of chosen operators.

Two modes, below autograd, work as the two contexts of a checkpoint: the first keeps
what a policy says, the second gives it back in place of running the operator again.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import taeda

from . import _pytree as pytree
from ._python_dispatch import TorchDispatchMode

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What happens to an operator's result: it is kept, or computed again.

    PREFER says that the compiler may decide otherwise. Results are not moved to
    another device: the policies for that are refused.
    """

    MUST_SAVE = 0  # kept
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2  # computed again
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4  # moved to another device
    PREFER_CPU_OFFLOAD = 5


_SAVES = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}
_OFFLOADS = {CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD}
# Aliases that autograd makes when it likes.
SAC_IGNORED_OPS = {taeda.ops.aten.detach.default}


class SelectiveCheckpointContext:
    """What a policy function is told.

    Args:
        is_recompute: whether this is the second run.
        op_output: the operator's result; None in the second run, which may not need it.
    """

    def __init__(self, *, is_recompute: bool, op_output=None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept(NamedTuple):
    """A result, with the versions of its tensors."""

    value: object
    versions: tuple[int, ...]


def _tensors(value) -> list:
    return [x for x in pytree.tree_leaves(value) if isinstance(x, taeda.Tensor)]


def _aliases(value):
    """The same with tensors that autograd knows nothing of."""
    return pytree.tree_map_only(taeda.Tensor, lambda t: t.detach(), value)


class _Mode(TorchDispatchMode):
    def __init__(self, policy_fn: Callable, kept: dict, is_recompute: bool) -> None:
        super().__init__()
        self.policy_fn = policy_fn
        self.kept = kept
        self.is_recompute = is_recompute

    def saves(self, func, args, kwargs, result=None) -> bool:
        """What the policy says."""
        context = SelectiveCheckpointContext(
            is_recompute=self.is_recompute, op_output=result
        )
        policy = self.policy_fn(context, func, *args, **kwargs)
        if isinstance(policy, bool):
            return policy
        if policy in _OFFLOADS:
            raise NotImplementedError(f"CheckpointPolicy.{policy.name}")
        return policy in _SAVES


class _Keeping(_Mode):
    """The first run."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS or not self.saves(func, args, kwargs, result):
            return result
        kept = _aliases(result)
        versions = tuple(t._version for t in _tensors(kept))
        self.kept[func].append(_Kept(kept, versions))
        return result


class _GivingBack(_Mode):
    """The second run, in the order of the first."""

    def __init__(self, policy_fn, kept: dict, mutable: bool) -> None:
        super().__init__(policy_fn, kept, is_recompute=True)
        self.mutable = mutable
        self.given: dict = defaultdict(int)

    def __enter__(self):
        self.given.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS or not self.saves(func, args, kwargs):
            return func(*args, **kwargs)
        place = self.given[func]
        if place >= len(self.kept[func]):
            raise RuntimeError(
                f"{func} runs more often in the second run of the checkpoint than in "
                "the first: nothing is kept for it"
            )
        self.given[func] = place + 1
        kept = self.kept[func][place]
        versions = tuple(t._version for t in _tensors(kept.value))
        if versions != kept.versions and not self.mutable:
            raise RuntimeError(
                f"A result of {func} that was kept for selective checkpointing has "
                "been changed in place. allow_cache_entry_mutation=True permits that."
            )
        if taeda.Tag.nondeterministic_seeded in func.tags:
            func(*args, **kwargs)  # later draws shall be those of the first run
        return _aliases(kept.value)


def create_selective_checkpoint_contexts(
    policy_fn_or_list, allow_cache_entry_mutation: bool = False
):
    """The contexts of a checkpoint that keeps results of some operators.

    For `checkpoint(..., use_reentrant=False, context_fn=partial(
    create_selective_checkpoint_contexts, policy))`.

    Args:
        policy_fn_or_list: a function of (SelectiveCheckpointContext, operator,
            arguments of the call) that gives a CheckpointPolicy, or a list of the
            operators' overloads (`taeda.ops.aten.mm.default`) whose results are kept.
        allow_cache_entry_mutation: whether results may be changed in place.

    Returns:
        The contexts for the first and for the second run.

    Raises:
        TypeError: neither a function nor a list of overloads.

    Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; the
    choice by operators is that of Korthikanti et al., "Reducing Activation
    Recomputation in Large Transformer Models", 2022.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        from taeda._ops import OpOverload

        for op in policy:
            if not isinstance(op, OpOverload):
                raise TypeError(
                    "expected overloads of operators such as "
                    f"{taeda.__name__}.ops.aten.mm.default"
                    f", got {type(op)}"
                )
        chosen = frozenset(policy)

        def policy(context, op, *args, **kwargs):
            if op in chosen:
                return CheckpointPolicy.MUST_SAVE
            return CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict = defaultdict(list)
    return (
        _Keeping(policy, kept, is_recompute=False),
        _GivingBack(policy, kept, allow_cache_entry_mutation),
    )
