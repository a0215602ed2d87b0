"""Types that are part of shapes, and the leaves of calls."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from taeda.utils import _pytree as pytree


def test_constants_are_part_of_the_shape() -> None:
    @dataclass(frozen=True)
    class Setting:
        value: int

    pytree.register_constant(Setting)
    leaves, spec = pytree.tree_flatten([1, Setting(3), {"a": 2}])
    assert leaves == [1, 2]
    assert spec == pytree.tree_flatten([5, Setting(3), {"a": 6}])[1]
    assert spec != pytree.tree_flatten([5, Setting(4), {"a": 6}])[1]
    assert pytree.tree_unflatten([7, 8], spec) == [7, Setting(3), {"a": 8}]
    assert [x for _, x in pytree.tree_leaves_with_path([1, Setting(3)])] == [1]
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_constant(Setting)

    class Plain:
        pass

    with pytest.raises(TypeError, match="__eq__ and __hash__"):
        pytree.register_constant(Plain)


def test_leaves_of_a_call() -> None:
    assert pytree.arg_tree_leaves(1, [2, (3,)], b={"c": 4}) == [1, 2, 3, 4]
    assert pytree.arg_tree_leaves() == []
