"""Autocast and the default dtype in captured functions."""

from __future__ import annotations

import pytest
import taeda
from taeda.compiler._frames import capture


def scoped(x, w):
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        y = x @ w
        with taeda.autocast("cpu", enabled=False):
            z = (x @ w).dtype
        v = y.float() + 1
    return y, z, v, (x @ w).dtype, taeda.is_autocast_enabled("cpu")


def broken(x, w):
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        y = x @ w
        print(end="")
        z = x @ w
    return y, z, x @ w


def branching(x, w):
    return "small" if (x @ w).dtype == taeda.bfloat16 else "plain"


def kept_scope(x, w, scope=taeda.autocast("cpu", dtype=taeda.bfloat16)):  # noqa: B008
    with scope:
        return x @ w


def open_scopes() -> int:
    taeda.autocast_increment_nesting()
    return taeda.autocast_decrement_nesting()


@pytest.mark.parametrize("function", [scoped, broken, kept_scope])
def test_scopes_switch_what_they_do_eagerly(function, same):
    x, w = taeda.ones(2, 3), taeda.ones(3, 2, requires_grad=True)
    compiled = capture(function)
    for _ in range(2):
        same(compiled(x, w), function(x, w))
    assert not taeda.is_autocast_enabled("cpu") and open_scopes() == 0
    assert compiled.explain()["graphs"] == (2 if function is broken else 1)


def test_a_scope_around_the_call_is_another_graph():
    x, w = taeda.ones(2, 3), taeda.ones(3, 2)
    compiled = capture(branching, fullgraph=True)
    assert compiled(x, w) == "plain"
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        assert compiled(x, w) == "small"
    assert compiled(x, w) == "plain"


def test_an_error_inside_a_scope_leaves_it():
    def failing(x):
        with taeda.autocast("cpu"):
            y = x @ x
            raise KeyError(y.dtype)

    with pytest.raises(KeyError, match="bfloat16"):
        capture(failing)(taeda.ones(2, 2))
    assert not taeda.is_autocast_enabled("cpu") and open_scopes() == 0


def test_casts_of_weights_are_dropped_after_the_scope():
    x, w = taeda.ones(2, 3), taeda.ones(3, 2, requires_grad=True)

    def twice(x, w):
        with taeda.autocast("cpu"):
            return (x @ w + x @ w).sum()

    compiled = capture(twice)
    for value in (1.0, 2.0):
        with taeda.no_grad():
            w.fill_(value)
        out = compiled(x, w)
        w.grad = None
        out.backward()
        assert float(out) == 24 * value
        assert taeda.equal(w.grad, taeda.full((3, 2), 4.0))


def test_the_default_dtype_is_part_of_a_graph(same):
    def made(x):
        return taeda.ones(2).dtype, x + taeda.ones(2)

    def switching(x):
        taeda.set_default_dtype(taeda.float64)
        y = taeda.ones(2)
        taeda.set_default_dtype(taeda.float32)
        return x + y

    compiled = capture(made)
    x = taeda.zeros(2)
    same(compiled(x), made(x))
    try:
        taeda.set_default_dtype(taeda.float64)
        same(compiled(x), made(x))
    finally:
        taeda.set_default_dtype(taeda.float32)
    for _ in range(2):
        assert capture(switching)(x).dtype == taeda.float64
        assert taeda.get_default_dtype() == taeda.float32
