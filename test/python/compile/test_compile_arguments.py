"""Arguments of taeda.compile that count captures, and names."""

from __future__ import annotations

import inspect

import pytest
import taeda
from taeda._dynamo.exc import FailOnRecompileLimitHit

DTYPES = (taeda.float32, taeda.float64, taeda.int32, taeda.int16)


@pytest.fixture
def theirs():
    import torch

    return torch


def recording():
    """A backend that runs graphs as they are, and the list that it keeps them in."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return backend, graphs


def compiled(**settings):
    backend, graphs = recording()

    def function(x):
        return x + 1

    return taeda.compile(function, backend=backend, **settings), graphs


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_function_has_a_limit_of_its_own(limit) -> None:
    function, graphs = compiled(recompile_limit=limit)
    for dtype in DTYPES:
        assert function(taeda.ones(2, dtype=dtype)).dtype == dtype
    assert len(graphs) == limit
    other, more = compiled()
    for dtype in DTYPES:
        other(taeda.ones(2, dtype=dtype))
    assert len(more) == len(DTYPES)


def test_with_fullgraph_the_limit_raises() -> None:
    function, graphs = compiled(recompile_limit=1, fullgraph=True)
    function(taeda.ones(2))
    with pytest.raises(FailOnRecompileLimitHit, match="recompile_limit 1"):
        function(taeda.ones(2, dtype=taeda.int64))
    assert len(graphs) == 1


def test_a_limit_holds_for_modules_and_decorators() -> None:
    backend, graphs = recording()

    net = taeda.compile(taeda.nn.ReLU(), backend=backend, recompile_limit=1)
    for dtype in DTYPES:
        net(taeda.ones(2, dtype=dtype))
    assert len(graphs) == 1

    @taeda.compile(backend=backend, recompile_limit=1, isolate_recompiles=True)
    def function(x):
        return x * 2

    for dtype in DTYPES:
        function(taeda.ones(2, dtype=dtype))
    assert len(graphs) == 2


def test_calls_of_compile_count_apart() -> None:
    backend, graphs = recording()

    def function(x):
        return x - 1

    for _ in range(2):
        made = taeda.compile(
            function, backend=backend, recompile_limit=1, isolate_recompiles=True
        )
        for dtype in DTYPES:
            made(taeda.ones(2, dtype=dtype))
    assert len(graphs) == 2


def test_a_name_is_kept() -> None:
    assert compiled(name="step")[0].compiled_name == "step"
    assert compiled()[0].compiled_name is None


def test_shapes_spec_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="shapes_spec"):
        taeda.compile(lambda x: x, shapes_spec={})


def test_parameters_are_pytorchs(theirs) -> None:
    ours = inspect.signature(taeda.compile).parameters
    assert [*ours] == [*inspect.signature(theirs.compile).parameters]
