"""Modes of functions around compiled calls and inside of them."""

from __future__ import annotations

import pytest
import taeda
from taeda.compiler._frames import capture
from taeda.overrides import (
    TorchFunctionMode,
)
from taeda.overrides import (
    _get_current_function_mode_stack as modes_now,
)


class Scales(TorchFunctionMode):
    """Each sum is multiplied, and counted."""

    def __init__(self, by: float) -> None:
        self.by, self.calls = by, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls += 1
        return out * self.by if func is taeda.Tensor.add else out


def plain(x):
    return (x + 1) * 2


def broken(x):
    y = x + 1
    print(end="")
    return y + 2


def entered(x, mode):
    with mode:
        y = x + 1
        print(end="")
        z = y + 2
    return z + 3


def made_inside(x):
    with Scales(3.0) as mode:
        y = x + 1
        print(end="")
        y = y + mode.by
    print(end="")
    return y + 1, mode.calls


def raising(x):
    with Scales(2.0):
        y = x + 1
        print(end="")
        if y.sum() > 0:
            raise KeyError("k")
    return y


@pytest.mark.parametrize("function", [plain, broken])
def test_modes_around_a_call_are_captured(function, same) -> None:
    x = taeda.ones(2)
    compiled = capture(function, fullgraph=function is plain)
    for outer, inner in ((10, 3), (10, 3), (7, 3)):
        with Scales(outer) as first, Scales(inner) as second:
            wanted, calls = function(x), (first.calls, second.calls)
            found = compiled(x)
            assert (first.calls, second.calls) == tuple(2 * n for n in calls)
            assert modes_now() == [first, second]
        same(found, wanted)
    assert modes_now() == []
    same(compiled(x), function(x))
    assert compiled.explain()["graphs"] == (3 if function is plain else 6)


@pytest.mark.parametrize("around", [False, True])
def test_a_block_may_break_in_its_middle(around, same) -> None:
    x, mode = taeda.ones(2), Scales(10)
    compiled = capture(entered)
    for _ in range(3):
        before = mode.calls
        with Scales(5.0 if around else 1.0):
            wanted = entered(x, mode)
            between = mode.calls
            same(compiled(x, mode), wanted)
        assert mode.calls - between == between - before and modes_now() == []


def test_modes_that_are_made_inside(same) -> None:
    compiled = capture(made_inside)
    for _ in range(3):
        same(compiled(taeda.ones(2)), made_inside(taeda.ones(2)))
        assert modes_now() == []


def test_what_raises_leaves_no_mode() -> None:
    compiled = capture(raising)
    for _ in range(3):
        with pytest.raises(KeyError):
            compiled(taeda.ones(2))
        assert modes_now() == []


def test_backends_get_what_modes_made_of_a_program(same) -> None:
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        assert modes_now() == []
        return gm.forward

    with Scales(10):
        found = taeda.compile(plain, backend=backend, fullgraph=True)(taeda.ones(2))
        same(found, plain(taeda.ones(2)))
    assert len(graphs[0].graph.nodes) == 2 + 3
