"""Writing to tensors that backward needs, against PyTorch."""

from __future__ import annotations

import pytest
import taeda
import torch


def allowed(library):
    return library.autograd.graph.allow_mutation_on_saved_tensors()


def square(t):
    x = t.arange(3.0, requires_grad=True)
    y = x.clone()
    out = (y**2).sum()
    y.sin_()
    out.backward()
    return x.grad


def through_a_view(t):
    x = t.arange(4.0, requires_grad=True)
    y = x.clone()
    out = (y[1:] ** 2).sum()
    y[0:2].mul_(5)
    y.zero_()
    out.backward()
    return x.grad


def of_a_result(t):
    x = t.arange(3.0, requires_grad=True)
    y = x.exp()
    z = y * 2
    y.detach().fill_(7)
    z.sum().backward()
    return x.grad


def written_by_out(t):
    x = t.arange(3.0, requires_grad=True)
    w = t.ones(3)
    out = (x * w).sum()
    t.add(w, 4, out=w)
    out.backward()
    return x.grad


def over_a_list(t):
    x = t.ones(2, requires_grad=True)
    ws = [t.ones(2), t.ones(2)]
    out = sum((x * w).sum() for w in ws)
    t._foreach_add_(ws, 1.0)
    (out + sum((x * w).sum() for w in ws)).backward()
    return x.grad


def written_before(t):
    x = t.arange(3.0, requires_grad=True)
    y = x.clone()
    y.add_(1)
    out = (y * y).sum()
    out.backward()
    return x.grad


@pytest.mark.parametrize(
    "program",
    [square, of_a_result, written_by_out, written_before],
)
def test_backward_gets_tensors_as_they_were(program) -> None:
    found = []
    for library in (taeda, torch):
        with allowed(library):
            found.append(program(library).tolist())
    assert found[0] == pytest.approx(found[1])


def test_writes_that_pytorch_overlooks() -> None:
    """Its copies go by the address of the first element, and miss these writes."""
    with allowed(taeda):
        assert through_a_view(taeda).tolist() == [0.0, 2.0, 4.0, 6.0]
        assert over_a_list(taeda).tolist() == [6.0, 6.0]


def test_without_it_backward_refuses() -> None:
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square(taeda)


def test_what_was_saved_lives_as_long_as_its_graph_and_the_context() -> None:
    for library in (taeda, torch):
        with allowed(library):
            x = library.ones(2, requires_grad=True)
            out = (x.clone() ** 2).sum()
        with pytest.raises(AssertionError, match="backward outside of the"):
            out.backward()
        with allowed(library), pytest.raises(RuntimeError, match="cannot be nested"):
            with allowed(library):
                pass
    with allowed(taeda) as context:
        y = taeda.ones(2, requires_grad=True).clone()
        out = (y**2).sum()
        assert any(len(entries) for entries in context.saved.values())
        del out
        assert not any(len(entries) for entries in context.saved.values())
        context.clear()
