"""Random programs of views and in-place changes, against PyTorch's autograd."""

from __future__ import annotations

import random

import pytest
import taeda
import torch

# Errors are compared by what they say, not by the whole text.
PHRASES = (
    "a leaf Variable that requires grad",
    "a view of a leaf Variable",
    "modified by an inplace operation",
    "does not require grad",
    "does not have a grad_fn",
)


def phrase_of(error: Exception) -> str:
    text = str(error)
    return next((p for p in PHRASES if p in text), text)


def view_of(chooser: random.Random, t):
    kind = chooser.randrange(4)
    if kind == 0:
        return t[0] if t.dim() > 1 else t
    if kind == 1:
        return t.t() if t.dim() == 2 else t
    if kind == 2:
        return t.view(-1) if t.is_contiguous() else t
    return t.detach()


def change(chooser: random.Random, a, b) -> None:
    kind = chooser.randrange(3)
    if kind == 0:
        a.mul_(b if a.shape == b.shape else 1.5)
    elif kind == 1:
        a.add_(b.sum() * 0.1)
    elif a.shape == b.shape:
        a.copy_(b)


def run(lib, seed: int) -> list:
    """What a program computes: values, flags, gradients, second derivatives."""
    chooser = random.Random(seed)
    leaves = []
    for _ in range(3):
        rows = [[chooser.uniform(-2, 2) for _ in range(3)] for _ in range(2)]
        wanted = chooser.random() < 0.7 or not leaves
        leaves.append(lib.tensor(rows, dtype=lib.float64, requires_grad=wanted))
    tensors = [x * 1 if chooser.random() < 0.7 else x.detach().clone() for x in leaves]
    seen: list = []
    for _ in range(chooser.randint(3, 9)):
        a, b = chooser.choice(tensors), chooser.choice(tensors)
        action = chooser.randrange(4)
        try:
            if action == 0:
                tensors.append(a * b if a.shape == b.shape else (a * 0.5).exp())
            elif action == 1:
                tensors.append(view_of(chooser, a))
            else:
                change(chooser, a, b)
        except RuntimeError as error:
            seen.append(phrase_of(error))
            break
    loss = sum((t * t).sum() for t in tensors)
    seen.append([t.requires_grad for t in tensors])
    seen.append([t.is_leaf for t in tensors])
    seen.append(loss.item())
    wanted = [x for x in leaves if x.requires_grad]
    return seen + derivatives(lib, loss, wanted)


def derivatives(lib, loss, leaves: list) -> list:
    try:
        grads = lib.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
        size = sum((g * g).sum() for g in grads if g is not None)
        if not getattr(size, "requires_grad", False):
            return [values(grads)]
        second = lib.autograd.grad(size, leaves, allow_unused=True)
    except RuntimeError as error:
        return [phrase_of(error)]
    return [values(grads), values(second)]


def values(grads) -> list:
    return [None if g is None else g.reshape(-1).tolist() for g in grads]


def agree(a, b) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(agree, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-6 * max(1.0, abs(a))
    return a == b


@pytest.mark.parametrize("block", range(4))
def test_programs(block):
    for seed in range(block * 100, block * 100 + 100):
        want, got = run(torch, seed), run(taeda, seed)
        assert agree(want, got), f"seed {seed}:\ntorch {want}\ntaeda {got}"
