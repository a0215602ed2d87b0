"""`_functorch.config`."""

from __future__ import annotations

import warnings

import pytest
import taeda
from taeda._functorch import config


def compiled(budget: float) -> tuple:
    """The budgets that graphs were made with, and the gradient."""
    from taeda import _compiler

    given = []

    def compile_(*args, **options):
        given.append(options["budget"])
        return real(*args, **options)

    real, _compiler.compile = _compiler.compile, compile_
    try:
        with config.patch(activation_memory_budget=budget):
            taeda._dynamo.reset()
            x = taeda.ones(64, requires_grad=True)
            f = taeda.compile(lambda x: x.sin().cos().exp() @ x, fullgraph=True)
            f(x).backward()
    finally:
        _compiler.compile = real
    return given, x.grad


def test_the_budget_reaches_the_partition():
    all_kept, want = compiled(1.0)
    none_kept, found = compiled(0.0)
    assert set(all_kept) == {1.0} and set(none_kept) == {0.0}
    taeda.testing.assert_close(found, want)


def test_what_cannot_be_set():
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 2.0"):
        config.activation_memory_budget = 2.0
    assert config.activation_memory_budget == 1.0
    with pytest.warns(UserWarning, match="functionalize_rng_ops is always False here"):
        config.functionalize_rng_ops = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with config.patch(check_custom_op_aliasing=False):
            pass
