"""Questions about numbers that may be symbolic."""

from __future__ import annotations

import pytest
import taeda
from taeda._subclasses.fake_tensor import FakeTensorMode
from taeda.fx.experimental import symbolic_shapes as shapes
from taeda.fx.experimental.proxy_tensor import make_fx


def test_numbers_are_concrete() -> None:
    assert shapes.is_concrete_int(3) and not shapes.is_concrete_int(3.0)
    assert shapes.is_concrete_bool(True) and shapes.is_concrete_float(1.5)
    assert shapes.has_static_value(3) and shapes.guard_scalar(2.5) == 2.5
    assert shapes.statically_known_false(False)
    assert not shapes.statically_known_false(True)
    with pytest.raises(AssertionError, match="unrecognized scalar"):
        shapes.guard_scalar("x")


def test_symbols_are_not_until_they_are_fixed() -> None:
    env = shapes.ShapeEnv()
    s, t = env.create_size(8), env.create_size(5)
    assert not shapes.is_concrete_int(s) and not shapes.has_static_value(s)
    condition = s > 3
    assert not shapes.is_concrete_bool(condition)
    assert not shapes.statically_known_false(condition)
    assert shapes.statically_known_false(s < 0)
    assert env.guards == []
    assert isinstance(shapes.sym_or(s < 3, t > 2), taeda.SymBool)
    both = shapes.sym_and(condition, t > 2)
    assert isinstance(both, taeda.SymBool) and shapes.guard_bool(both)
    assert len(env.guards) >= 1
    assert shapes.guard_scalar(s) == 8 and shapes.is_concrete_int(s)


def test_equality_of_structures() -> None:
    s = shapes.ShapeEnv().create_size(8)
    assert shapes.sym_eq((1, [2, 3]), (1, [2, 3])) is True
    assert shapes.sym_eq((1, 2), (1, 2, 3)) is False
    assert isinstance(shapes.sym_eq((s, 1), (9, 1)), taeda.SymBool)
    with pytest.raises(AssertionError, match="unexpected sym_eq"):
        shapes.sym_eq("a", "a")


def test_what_comes_from_data() -> None:
    env = shapes.ShapeEnv()
    u = env.create_unbacked_symint()
    assert shapes.has_free_unbacked_symbols(u)
    assert not shapes.has_free_unbacked_symbols(env.create_size(8))
    assert shapes.expect_true(u >= 2)
    assert env.deferred_runtime_asserts
    with pytest.raises(RuntimeError):
        shapes.expect_true(False)


def test_questions_about_traced_graphs() -> None:
    gm = make_fx(lambda x: x.new_zeros(x.shape[0]), tracing_mode="symbolic")(
        taeda.ones(3, 4)
    )
    (value,) = shapes.fx_placeholder_vals(gm)
    assert shapes.has_symbolic_sizes_strides(value)
    assert not shapes.has_symbolic_sizes_strides(taeda.ones(2))
    assert shapes.fx_placeholder_targets(gm) == ["x_1"]
    read = [n for n in gm.graph.nodes if shapes.is_accessor_node(n)]
    assert [n.name for n in read] == ["sym_size_int"]


def test_dims_that_may_be_dropped_are_asked_of_their_size() -> None:
    env = shapes.ShapeEnv()
    with FakeTensorMode(shape_env=env):
        found = taeda.ones(4).nonzero()
        with env.laying_out():
            assert found.sum(1).dim() == 1 and found.squeeze(1).dim() == 1
            with pytest.raises(shapes.GuardOnDataDependentSymNode):
                found.squeeze()
            assert (found + found).dim() == 2
