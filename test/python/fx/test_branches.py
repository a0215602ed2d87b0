"""`cond` under `make_fx`: a node with the graphs of both branches."""

from __future__ import annotations

import pytest
import taeda
from taeda.fx.experimental.proxy_tensor import make_fx


def branch(x, y, yes):
    """Uses `y` from outside of the branches, and decides again in one of them."""

    def inner(x):
        return taeda.cond(x.sum() > 0, lambda x: x + y, lambda x: x - y, (x,))

    return taeda.cond(yes, lambda x: (x.sin(), y), lambda x: (inner(x), x), (x,))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_both_branches_are_graphs(mode):
    x, y = taeda.randn(4), taeda.ones(4)
    graph = make_fx(branch, tracing_mode=mode)(x, y, taeda.tensor(False))
    assert {name for name, _ in graph.named_children()} == {
        "true_graph_0",
        "false_graph_0",
    }
    assert "true_graph_0" in dict(graph.false_graph_0.named_children())
    for x in (taeda.tensor([1.0, 2.0, 3.0, 4.0]), -taeda.ones(4)):
        for yes in (taeda.tensor(True), taeda.tensor(False)):
            ours, wanted = graph(x, y, yes), branch(x, y, yes)
            assert all(map(taeda.equal, ours, wanted))


def test_unlike_branches_are_refused():
    def unlike(x, yes):
        return taeda.cond(yes, lambda x: x, lambda x: x.sum(), (x,))

    with pytest.raises(RuntimeError, match="must return the same shapes"):
        make_fx(unlike)(taeda.ones(2), taeda.tensor(True))
