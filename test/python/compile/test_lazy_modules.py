"""Lazy modules get their parameters while they are captured; detached writes."""

from __future__ import annotations

import pytest
import taeda
from taeda import nn

LAZY = {
    "linear": (lambda: nn.LazyLinear(4), (2, 3)),
    "convolution": (lambda: nn.LazyConv2d(4, 3, padding=1), (2, 3, 5, 5)),
    "transposed": (lambda: nn.LazyConvTranspose1d(4, 3), (2, 3, 5)),
    "batch norm": (lambda: nn.LazyBatchNorm1d(), (4, 3)),
    "instance norm": (lambda: nn.LazyInstanceNorm1d(affine=True), (4, 3, 5)),
    "in a sequence": (
        lambda: nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(2)),
        (2, 3),
    ),
}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", LAZY)
def test_lazy_modules_are_one_graph(name, in_place) -> None:
    make, shape = LAZY[name]
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    results = []
    for compiled in (False, True):
        taeda.manual_seed(7)
        module = make()
        call = module
        if compiled and in_place:
            module.compile(fullgraph=True, backend=backend)
        elif compiled:
            call = taeda.compile(module, fullgraph=True, backend=backend)
        x = taeda.linspace(-1, 1, taeda.Size(shape).numel()).reshape(shape)
        call(x).square().sum().backward()
        assert "Lazy" not in repr(module)
        grads = [p.grad for p in module.parameters()]
        results.append((call(x), *module.state_dict().values(), *grads))
    assert len(graphs) == 1
    for mine, theirs in zip(*reversed(results), strict=True):
        assert taeda.allclose(mine, theirs, atol=1e-6)


def test_a_lazy_module_that_fails_says_why() -> None:
    class Wrong(nn.LazyLinear):
        def initialize_parameters(self, x) -> None:
            raise ValueError("no such shape")

    with pytest.raises(ValueError, match="no such shape"):
        taeda.compile(Wrong(3))(taeda.ones(2, 2))


WRITES = {
    "detached": lambda w, x: w.detach().mul_(2),
    "a view of the detached": lambda w, x: w.detach()[1:].mul_(2),
    "the detached of a view": lambda w, x: w[1:].detach().mul_(2),
    "renorm": lambda w, x: nn.functional.embedding(
        taeda.tensor([1]), w.reshape(1, -1).detach().T, max_norm=0.5
    ),
    "then recorded": lambda w, x: (x.detach().mul_(2), x.mul_(w)),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_to_detached_aliases_has_no_history(write) -> None:
    results = []
    for wrap in (lambda f: f, lambda f: taeda.compile(f, fullgraph=True)):
        w = nn.Parameter(taeda.arange(1.0, 5.0))
        leaf = taeda.ones(4, requires_grad=True)

        def step(w, x):
            WRITES[write](w, x)
            return (w * 3 * x).sum()

        x = leaf * 2
        out = wrap(step)(w, x)
        out.backward()
        results.append((out, w.detach(), x.detach(), w.grad, leaf.grad))
    for mine, theirs in zip(*results, strict=True):
        assert taeda.equal(mine, theirs)


def test_embeddings_with_a_largest_norm_are_one_graph() -> None:
    rows = taeda.tensor([[0, 2], [2, 1]])
    for kind in (nn.Embedding, nn.EmbeddingBag):
        results = []
        for wrap in (lambda f: f, lambda f: taeda.compile(f, fullgraph=True)):
            taeda.manual_seed(0)
            module = kind(4, 3, max_norm=0.5)
            out = wrap(module)(rows)
            out.square().sum().backward()
            results.append((out, module.weight.detach(), module.weight.grad))
        for mine, theirs in zip(*results, strict=True):
            assert taeda.allclose(mine, theirs)
