"""Dims by name, against PyTorch's `functorch.einops`."""

from __future__ import annotations

import pytest
import taeda
import torch

CASES = [
    ((2, 3, 4), "a b c -> c a b", {}),
    ((2, 3, 4), "a b c -> (a b) c", {}),
    ((2, 3, 4), "a b c -> (c b a)", {}),
    ((2, 12), "a (b c) -> c (a b)", {"c": 4}),
    ((2, 12), "a (b c d) -> a d c b", {"b": 2, "d": 3}),
    ((2, 3, 4, 5), "a ... c -> c ... a", {}),
    ((2, 3, 4, 5), "a ... -> (a ...)", {}),
    ((2, 1, 3), "a 1 b -> b a", {}),
    ((2, 3), "a b -> a 1 b 1", {}),
    ((2, 3), "a b->b a", {}),
    ((), "->", {}),
    ((0, 3), "a b -> (a b)", {}),
    ((4, 6), "(a1 a2) (b1 b2) -> (a1 b1) a2 b2", {"a1": 2, "b2": 3}),
]
REFUSED = [
    ((2, 3), "a b", {}),
    ((2, 3), "a b -> a b -> a", {}),
    ((2, 3), "a b -> a", {}),
    ((2, 3), "a b -> a b c", {}),
    ((2, 3), "a a -> a", {}),
    ((4, 3), "(a a) b -> b a", {"a": 2}),
    ((2, 3), "a b c -> c b a", {}),
    ((2, 3), "(a b -> a b", {}),
    ((2, 3), "((a) b) -> a b", {}),
    ((2, 3), "a) b -> a b", {}),
    ((2, 3), "a 2 -> a 2", {}),
    ((2, 3), "a ? -> a", {}),
    ((2, 3), "(a b) c -> a b c", {}),
    ((2, 3), "(a b) c -> a b c", {"a": 3}),
    ((2, 3), "a b -> b a", {"c": 3}),
    ((2, 3), "a b -> b a", {"a": 3}),
    ((2, 3), "a ... -> a", {}),
    ((2, 3), "(a ...) -> a ...", {}),
]


@pytest.mark.parametrize("shape, pattern, sizes", CASES)
def test_patterns_give_what_pytorch_gives(shape, pattern, sizes) -> None:
    found = []
    for library in (taeda, torch):
        x = library.arange(float(library.Size(shape).numel())).reshape(shape)
        result = library.func.rearrange(x, pattern, **sizes)
        found.append((tuple(result.shape), result.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("shape, pattern, sizes", REFUSED)
def test_patterns_that_do_not_fit_are_refused(shape, pattern, sizes) -> None:
    with pytest.raises(Exception) as theirs:
        torch.func.rearrange(torch.zeros(shape), pattern, **sizes)
    with pytest.raises(ValueError, match="rearrange"):
        taeda.func.rearrange(taeda.zeros(shape), pattern, **sizes)
    assert theirs.type is not AttributeError


def test_dots_in_parentheses_and_empty_ones() -> None:
    """PyTorch's own raises an AssertionError for these; einops has them."""
    x = taeda.arange(24.0).reshape(2, 3, 4)
    joined = taeda.func.rearrange(x, "... c -> c (...)")
    assert joined.tolist() == x.permute(2, 0, 1).reshape(4, 6).tolist()
    moved = taeda.func.rearrange(x[:, :1], "a () b -> b () a ()")
    assert moved.tolist() == x[:, :1].permute(2, 1, 0)[..., None].tolist()


def test_sequences_are_stacked_and_gradients_pass() -> None:
    parts = [taeda.ones(2, requires_grad=True), taeda.zeros(2)]
    result = taeda.func.rearrange(parts, "n a -> a n")
    assert result.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    result.sum().backward()
    assert parts[0].grad.tolist() == [1.0, 1.0]
