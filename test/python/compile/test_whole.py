"""`_dynamo.export`: a function as one graph with its signature."""

from __future__ import annotations

import pytest
import taeda
from taeda._dynamo import export
from taeda._dynamo.exc import Unsupported


class Model(taeda.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = taeda.nn.Linear(4, 4)

    def forward(self, x, table, scale=2, *, flag=True):
        y = self.lin(x) + x.shape[0] * scale
        return {"a": y if flag else -y, "b": (table["q"], x, x.shape[0], "text")}


@pytest.mark.parametrize("aten_graph", [False, True])
def test_a_module(aten_graph, same) -> None:
    model, q = Model(), taeda.rand(2)
    made = export(model, aten_graph=aten_graph)(taeda.ones(3, 4), {"q": q}, flag=False)
    graph = made.graph_module
    assert isinstance(graph, taeda.fx.GraphModule) and made.guards
    for rows in (3, 5):
        x = taeda.rand(rows, 4)
        found = graph(x, {"q": q}, flag=False)
        wanted = model(x, {"q": q}, flag=False)
        same(found["a"], wanted["a"])
        assert found["b"][1] is x and found["b"][3] == "text"
    targets = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    assert any("aten" in t for t in targets) == aten_graph


def test_functions_of_closures_and_no_calls(same) -> None:
    weight = taeda.rand(3)
    made = export(lambda *xs: [x * weight for x in xs])(taeda.ones(3), taeda.zeros(3))
    same(made.graph_module(weight, weight), [weight * weight] * 2)
    assert export(lambda x: (x, 1))(weight).graph_module(weight) == (weight, 1)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(Unsupported):
        export(lambda x: print(x))(taeda.ones(2))
    with pytest.raises(NotImplementedError, match="dynamic_shapes"):
        export(lambda x: x, dynamic_shapes=({0: None},))
    with pytest.warns(FutureWarning, match="deprecated"):
        export(lambda x: x + 1, taeda.ones(2))


def test_branches(same) -> None:
    def function(x):
        return taeda.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    made = export(function)(taeda.ones(2))
    for x in (taeda.ones(2), -taeda.ones(2)):
        same(made.graph_module(x), function(x))
