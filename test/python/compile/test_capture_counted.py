"""Results whose size the elements decide, in one graph: `nonzero`, masks, `unique`."""

from __future__ import annotations

import pytest
import taeda
from taeda._dynamo.exc import Unsupported
from taeda._dynamo.utils import counters


def positive(x):
    return x[x > 0] * 2 + 1


def rows(x):
    return x[x[:, 0] > 0].relu() @ taeda.ones(5, 2)


def sums(x):
    return x.masked_select(x > 0).sum(), x[x > 0.5].mean().sin()


def places(x):
    found = x.detach().nonzero()
    return found, found.shape[0], taeda.zeros(found.shape[0] + 1), taeda.argwhere(x)


def tuple_of_places(x):
    return taeda.where(x > 0), x.nonzero(as_tuple=True)


def distinct(x):
    whole = (x * 2).round().detach()
    parts = taeda.unique(whole, return_inverse=True, return_counts=True)
    return *parts, whole.unique(dim=0), taeda.unique_consecutive(whole, dim=-1)


def counts(x):
    numbers = (x.detach() > 0).sum(1)
    return taeda.bincount(numbers, minlength=2), numbers.bincount(x[:, 0].detach())


def parts(x):
    return taeda.tensor_split(x, taeda.tensor([1, 3]), dim=1)


def scattered(x):
    index = (x[:, 0] > 0).nonzero().squeeze(1)
    return taeda.zeros(4, 5).index_add(0, index, x[index])


def repeated(x):
    times = (x.detach() > 0).sum(1)
    return x.repeat_interleave(times, 0), times.repeat_interleave(times)


def stretch(x):
    first = (x[:, 0].detach() > 0).sum().clamp(max=3)
    found = taeda.narrow(x, 1, first, 2)
    return found * 2, x.narrow(dim=-1, start=first, length=1).is_contiguous()


PROGRAMS = [positive, rows, sums, places, tuple_of_places, distinct, counts, parts]
PROGRAMS += [scattered, repeated, stretch]


def results(function, x) -> list:
    x = x.clone().requires_grad_()
    found = list(taeda.utils._pytree.tree_leaves(function(x)))
    tensors = [t for t in found if isinstance(t, taeda.Tensor)]
    losses = [t.sum() for t in tensors if t.requires_grad and t.numel()]
    if losses:
        sum(losses).backward()
    return [*found, *([] if x.grad is None else [x.grad])]


def agree(a, b) -> bool:
    if not isinstance(a, taeda.Tensor):
        return a == b
    return a.shape == b.shape and taeda.allclose(a, b, equal_nan=True)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_graph_for_every_count(function) -> None:
    """Of no elements, one and many: the graph is that of the first call."""
    counters.clear()
    compiled = taeda.compile(function, fullgraph=True)
    x = taeda.randn(4, 5, generator=taeda.Generator().manual_seed(1))
    one = taeda.full((4, 5), -1.0)
    one[2, 0] = 1.0
    for given in (x, x.abs(), taeda.full((4, 5), -1.0), one, -x):
        found, wanted = results(compiled, given), results(function, given)
        assert len(found) == len(wanted)
        assert all(map(agree, found, wanted))
    assert counters["stats"]["unique_graphs"] == 1


def test_a_decision_ends_the_graph() -> None:
    def decides(x):
        found = x[x > 0]
        return found if found.shape[0] > 3 else -found

    x = taeda.randn(4, 5)
    with pytest.raises(Unsupported, match="data-dependent"):
        taeda.compile(decides, fullgraph=True)(x)
    for given in (x.abs(), -x.abs()):
        assert taeda.equal(taeda.compile(decides)(given), decides(given))


@pytest.mark.parametrize("split", [False, True])
def test_where_a_view_begins_is_no_constant(split: bool) -> None:
    def begins(x, at):
        view = x.tensor_split(at[None])[1] if split else x.narrow(0, at, 2)
        return view.storage_offset()

    x = taeda.randn(6)
    with pytest.raises(Unsupported, match="where a view begins"):
        taeda.compile(begins, fullgraph=True)(x, taeda.tensor(3))
    assert taeda.compile(begins)(x, taeda.tensor(3)) == 3


def test_a_stretch_that_is_not_there_raises_when_the_graph_runs() -> None:
    compiled = taeda.compile(lambda x, at: x.narrow(0, at, 2), fullgraph=True)
    x = taeda.arange(6)
    assert compiled(x, taeda.tensor(-2)).tolist() == [4, 5]
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        compiled(x, taeda.tensor(5))


def test_a_dim_that_may_be_dropped_ends_the_graph() -> None:
    def drops(x):
        return x[x > 0].squeeze()

    with pytest.raises(Unsupported, match="data-dependent"):
        taeda.compile(drops, fullgraph=True)(taeda.randn(4))


def test_without_fullgraph_the_graph_ends_there() -> None:
    def function(x):
        return (x + 1)[x > 0]

    counters.clear()
    x = taeda.randn(8)
    assert taeda.equal(taeda.compile(function)(x), function(x))
    with taeda._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = taeda.compile(function, backend=lambda module, _: module)
        assert taeda.equal(compiled(x), function(x))
    assert counters["stats"]["unique_graphs"] == 2


def test_normal_of_tensors_is_in_the_graph() -> None:
    counters.clear()

    def function(mean, std):
        return taeda.normal(mean, std) + 1

    compiled = taeda.compile(function, fullgraph=True)
    mean, std = taeda.zeros(3), taeda.full((3,), 1e-6)
    assert taeda.allclose(compiled(mean, std), taeda.ones(3), atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1
