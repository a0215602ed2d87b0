"""Derivatives of functions and mapping over a batch equal PyTorch's."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch


def leaves(tree) -> list:
    """The tensors of nested tuples, lists and dictionaries, in order."""
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in leaves(each)]
    return [tree]


def data(library) -> tuple:
    """A matrix and a vector."""
    random = numpy.random.default_rng(0)
    x, w = random.normal(size=(3, 4)), random.normal(size=4)
    return library.from_numpy(x), library.from_numpy(w)


def loss(library):
    """A scalar function of a vector and a matrix."""
    return lambda w, x: library.tanh(x @ w).sum()


PROGRAMS = {
    "grad": lambda t, x, w: t.func.grad(loss(t))(w, x),
    "grad of both": lambda t, x, w: t.func.grad(loss(t), argnums=(0, 1))(w, x),
    "grad of grad": lambda t, x, w: t.func.grad(t.func.grad(lambda s: s**3))(w[0]),
    "value": lambda t, x, w: t.func.grad_and_value(loss(t))(w, x),
    "aux": lambda t, x, w: t.func.grad(lambda v: (v.sum(), v * 2), has_aux=True)(w),
    "per sample": lambda t, x, w: t.vmap(t.func.grad(loss(t)), (None, 0))(w, x),
    "jacrev": lambda t, x, w: t.func.jacrev(lambda v: v * v.sum())(w),
    "jacfwd": lambda t, x, w: t.func.jacfwd(lambda v: x @ v.sin())(w),
    "hessian": lambda t, x, w: t.func.hessian(loss(t))(w, x),
    "vjp": lambda t, x, w: t.func.vjp(t.sin, w)[1](t.ones_like(w)),
    "jvp": lambda t, x, w: t.func.jvp(t.sin, (w,), (t.ones_like(w),)),
    "dims": lambda t, x, w: t.vmap(
        lambda a, b: (a + b, a * b), in_dims=(0, 1), out_dims=(1, 0)
    )(x, x.mT),
    "nested": lambda t, x, w: t.vmap(t.vmap(lambda a, b: a * b, (0, None)), (None, 0))(
        w, w
    ),
    "tree": lambda t, x, w: t.vmap(lambda d: {"y": d["x"].sum()})({"x": x}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name) -> None:
    got = leaves(PROGRAMS[name](taeda, *data(taeda)))
    want = leaves(PROGRAMS[name](torch, *data(torch)))
    for g, w in zip(got, want, strict=True):
        assert not g.requires_grad
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-12, atol=1e-12)


def test_what_an_outer_graph_follows_stays_followed() -> None:
    x = taeda.ones(3, requires_grad=True)
    y = taeda.func.grad(lambda v: (v**3).sum())(x)
    assert y.requires_grad
    scale = taeda.ones(3, requires_grad=True)
    taeda.func.grad(lambda v: (v * scale).sum())(taeda.ones(3)).sum().backward()
    assert scale.grad.tolist() == [1, 1, 1]


def test_ensemble() -> None:
    models = [taeda.nn.Linear(4, 2) for _ in range(3)]
    params, buffers = taeda.func.stack_module_state(models)
    x = taeda.randn(5, 4)

    def call(p, b, x):
        return taeda.func.functional_call(models[0], (p, b), (x,))

    out = taeda.vmap(call, (0, 0, None))(params, buffers, x)
    assert taeda.equal(out, taeda.stack([model(x) for model in models]))


def test_random_numbers() -> None:
    def noisy(x):
        return x + taeda.randn(())

    x = taeda.zeros(3)
    with pytest.raises(RuntimeError, match="randomness"):
        taeda.vmap(noisy)(x)
    assert len(set(taeda.vmap(noisy, randomness="same")(x).tolist())) == 1
    assert len(set(taeda.vmap(noisy, randomness="different")(x).tolist())) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.vmap(t.sin, in_dims=1)(t.ones(2)),
        lambda t: t.vmap(t.add)(t.ones(2), t.ones(3)),
        lambda t: t.vmap(t.add)(t.ones(2), 3),
        lambda t: t.vmap(t.sin, in_dims=(None,))(t.ones(2)),
        lambda t: t.func.grad(t.sin)(t.ones(2)),
    ],
)
def test_refused_alike(call) -> None:
    raised = []
    for library in (taeda, torch):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            call(library)
        raised.append(type(caught.value))
    assert raised[0] is raised[1]
