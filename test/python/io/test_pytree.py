"""utils._pytree against PyTorch's."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
from taeda.utils import _pytree as ours

theirs = torch.utils._pytree
Point = namedtuple("Point", "x y")

TREES = [
    3,
    [],
    [1, (2, 3), {"b": 4, "a": [5]}],
    OrderedDict(z=1, a=[2]),
    defaultdict(list, k=[1, 2]),
    Point(1, [2, Point(3, 4)]),
    deque([1, [2]], maxlen=5),
    {"none": None, "text": "abc"},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_as_pytorch(tree) -> None:
    leaves, spec = ours.tree_flatten(tree)
    assert leaves == theirs.tree_flatten(tree)[0]
    assert spec.num_leaves == len(leaves)
    again = ours.tree_unflatten(leaves, spec)
    assert again == tree
    assert type(again) is type(tree)
    double = ours.tree_map(lambda a, b: (a, b), tree, tree)
    assert double == theirs.tree_map(lambda a, b: (a, b), tree, tree)
    paths = [ours.keystr(p) for p, _ in ours.tree_leaves_with_path(tree)]
    want = theirs.tree_flatten_with_path(tree)[0]
    assert paths == [theirs.keystr(p) for p, _ in want]
    assert spec == ours.tree_structure(tree)
    assert hash(spec) == hash(ours.tree_structure(tree))


def test_choosing_leaves() -> None:
    tree = {"a": [1, "x"], "b": 2.5}
    add = ours.tree_map_only((int, float), lambda v: v + 1, tree)
    assert add == {"a": [2, "x"], "b": 3.5}
    whole = ours.tree_leaves(tree, is_leaf=lambda v: isinstance(v, list))
    assert whole == [[1, "x"], 2.5]
    assert ours.tree_any(lambda v: v == "x", tree)
    assert ours.tree_all_only(int, lambda v: v == 1, tree)


def test_own_nodes() -> None:
    class Pair:
        def __init__(self, a, b) -> None:
            self.a, self.b = a, b

    ours.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    made = ours.tree_map(lambda v: v * 2, [Pair(1, 2)])
    assert (made[0].a, made[0].b) == (2, 4)
    with pytest.raises(ValueError, match="already registered"):
        ours.register_pytree_node(Pair, None, None)
    with pytest.raises(ValueError, match="no keys"):
        ours.tree_leaves_with_path(Pair(1, 2))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError):
        ours.tree_map(max, [1, 2], [1])
    with pytest.raises(ValueError):
        ours.tree_map(max, {"a": 1}, {"b": 1})
    with pytest.raises(ValueError, match="2 leaves"):
        ours.tree_unflatten([1], ours.tree_structure([1, 2]))
    with pytest.raises(TypeError, match="TreeSpec"):
        ours.tree_unflatten([1], 3)
