"""Checkpoints that keep the results of chosen operators."""

from __future__ import annotations

import importlib
from collections import Counter
from functools import partial

import pytest
import taeda
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

MM, SIN = taeda.ops.aten.mm.default, taeda.ops.aten.sin.default


class Counting(TorchDispatchMode):
    """Counts the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.found[func] += 1
        return func(*args, **(kwargs or {}))


def block(x, w):
    return taeda.sin(taeda.sin(x @ w) @ w).tanh()


def run(context_fn=None, function=block):
    taeda.manual_seed(3)
    x = taeda.randn(4, 4, dtype=taeda.float64, requires_grad=True)
    w = taeda.randn(4, 4, dtype=taeda.float64, requires_grad=True)
    with Counting() as counting:
        if context_fn is None:
            result = function(x, w)
        else:
            result = checkpoint(
                function, x, w, use_reentrant=False, context_fn=context_fn
            )
        result.sum().backward()
    return (result.detach(), x.grad, w.grad), counting.found


def same(a, b) -> bool:
    return all(taeda.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("saved", [[], [MM], [SIN], [MM, SIN]])
def test_gradients_are_those_without(saved) -> None:
    plain, plainly = run()
    found, counts = run(partial(create_selective_checkpoint_contexts, saved))
    assert same(plain, found)
    # Two forward products are computed again unless they are kept.
    assert counts[MM] == plainly[MM] + (0 if MM in saved else 2)
    assert counts[SIN] == plainly[SIN] + (0 if SIN in saved else 2)


def test_policies_are_asked_in_both_runs() -> None:
    asked = []

    def policy(context, op, *args, **kwargs):
        asked.append((context.is_recompute, op))
        chosen = op is SIN
        return (
            CheckpointPolicy.MUST_SAVE if chosen else CheckpointPolicy.PREFER_RECOMPUTE
        )

    plain, _ = run()
    found, _ = run(partial(create_selective_checkpoint_contexts, policy))
    assert same(plain, found)
    assert asked.count((False, SIN)) == 2 and asked.count((True, SIN)) == 2
    real = importlib.import_module("torch.utils.checkpoint").CheckpointPolicy
    assert {p.name: p.value for p in CheckpointPolicy} == {
        p.name: p.value for p in real
    }


def test_draws_after_a_kept_draw_are_those_of_the_first_run() -> None:
    def noisy(x, w):
        first = x * taeda.rand_like(x)
        return (taeda.rand_like(x) * (first @ w)).sin()

    drawing = [
        op
        for op in run(function=noisy)[1]
        if taeda.Tag.nondeterministic_seeded in op.tags
    ]
    assert drawing
    plain, _ = run(function=noisy)
    calls = Counter()

    def policy(context, op, *args, **kwargs):
        calls[context.is_recompute, op] += 1
        first = op in drawing and calls[context.is_recompute, op] == 1
        return (
            CheckpointPolicy.MUST_SAVE if first else CheckpointPolicy.PREFER_RECOMPUTE
        )

    context = partial(create_selective_checkpoint_contexts, policy)
    assert same(plain, run(context, noisy)[0])


def test_changed_results_are_noticed() -> None:
    def changing(x, w):
        kept = x @ w
        result = kept.sin()
        with taeda.no_grad():
            kept.mul_(2)
        return result * x

    context = partial(create_selective_checkpoint_contexts, [MM])
    with pytest.raises(RuntimeError, match="changed in place"):
        run(context, changing)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="expected overloads"):
        create_selective_checkpoint_contexts([taeda.ops.aten.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)
    policy = lambda *args, **kwargs: CheckpointPolicy.MUST_CPU_OFFLOAD
    with pytest.raises(NotImplementedError, match="MUST_CPU_OFFLOAD"):
        run(partial(create_selective_checkpoint_contexts, policy))
