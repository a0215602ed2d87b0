"""Shapes of named tuples, their texts, and leaves that stand for whole subtrees."""

from __future__ import annotations

from collections import namedtuple

import pytest
import taeda
import torch
from taeda.fx.immutable_collections import immutable_dict, immutable_list
from taeda.utils import _pytree as pytree
from torch.utils import _pytree as theirs

Point = namedtuple("Point", "x y")
Named = namedtuple("Named", "a")


@pytest.mark.parametrize(
    "tree",
    [
        (0, [0, 0, [0]]),
        Point(1, {"a": 2, "b": [3, 4]}),
        [Point(Point(1, 2), ()), {"k": 3}],
        [],
        5,
    ],
)
def test_shapes_are_shown_alike(tree) -> None:
    ours, other = pytree.tree_structure(tree), theirs.tree_structure(tree)
    assert repr(ours) == repr(other)
    assert ours.type is other.type
    assert pytree.tree_unflatten(pytree.tree_leaves(tree), ours) == tree


def test_named_tuples_have_names_in_texts() -> None:
    spec = pytree.tree_structure(Named(1))
    with pytest.raises(NotImplementedError, match="_register_namedtuple"):
        pytree.treespec_dumps(spec)
    pytree._register_namedtuple(Named, serialized_type_name="tests.Named")
    loaded = pytree.treespec_loads(pytree.treespec_dumps(spec))
    assert loaded == spec and pytree.tree_unflatten([2], loaded) == Named(2)
    with pytest.raises(TypeError, match="TreeSpec"):
        pytree.treespec_dumps("text")
    with pytest.raises(ValueError, match="protocol"):
        pytree.treespec_loads("[7, null]")


@pytest.mark.parametrize(
    "tree", [1, [1, 2], [1, (2, 3)], (1,), [[1, 2], 3], {"a": 1}, [1, 2, 3]]
)
def test_leaves_stand_for_subtrees(tree) -> None:
    whole = [0, (0, [0, 0])]
    ours = pytree._broadcast_to_and_flatten(tree, pytree.tree_structure(whole))
    other = theirs._broadcast_to_and_flatten(tree, theirs.tree_structure(whole))
    assert ours == other


@pytest.mark.parametrize("library", [pytree, theirs], ids=["taeda", "torch"])
def test_registrations_are_checked_and_the_older_one_warns(library) -> None:
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    def register(function, **options):
        function(Pair, lambda p: ([p.x, p.y], None), lambda v, _: Pair(*v), **options)

    with pytest.raises(ValueError, match="from_dumpable_context"):
        register(
            library.register_pytree_node,
            serialized_type_name="tests.Pair",
            to_dumpable_context=str,
        )
    with pytest.warns(FutureWarning, match="_register_pytree_node"):
        register(library._register_pytree_node)
    with (
        pytest.warns(FutureWarning),
        pytest.warns(UserWarning, match="already registered"),
    ):
        register(library._register_pytree_node)
    assert library.tree_leaves(Pair(1, [2])) == [1, 2]


def test_arguments_of_nodes_have_keys() -> None:
    for tree in (immutable_list([1, 2]), immutable_dict({"a": 1})):
        pairs, spec = pytree.tree_flatten_with_path(tree)
        assert [leaf for _, leaf in pairs] == pytree.tree_leaves(tree)
        assert spec == pytree.tree_structure(tree)
    graph = taeda.fx.symbolic_trace(lambda p: p.x, {"p": Point(taeda.fx.PH, 1)})
    assert graph(Point(3, 1)) == 3
    other = torch.fx.symbolic_trace(lambda p: p.x, {"p": Point(torch.fx.PH, 1)})
    assert other(Point(3, 1)) == 3


def test_only_dataclasses_are_registered_as_such() -> None:
    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(int)
