"""Derivatives of functions and mapping over a batch equal PyTorch's."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest
import taeda
import torch
from taeda.autograd.forward_ad import _set_fwd_grad_enabled


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
    "detached within two levels": lambda t, x, w: t.func.jvp(
        t.func.grad(lambda v: (v.detach() ** 2 * v).sum()), (w,), (t.ones_like(w),)
    ),
    "detached batch of tangents": lambda t, x, w: t.func.jvp(
        t.vmap(lambda v: v.detach() * v), (x,), (t.ones_like(x),)
    ),
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


def test_the_modules_of_pytorch_have_the_same_functions() -> None:
    from importlib import import_module

    for name in ("apis", "eager_transforms", "functional_call"):
        module = import_module(f"taeda._functorch.{name}")
        assert hasattr(torch._functorch, name)
        for each in module.__all__:
            own = getattr(module, each)
            assert getattr(taeda.func, each, own) is own
            assert hasattr(getattr(torch._functorch, name), each)


def test_the_old_package_is_an_alias() -> None:
    code = (
        "from taeda import as_torch; as_torch.install()\n"
        "import functorch, torch\n"
        "from functorch.experimental import chunk_vmap, control_flow\n"
        "assert functorch.vmap.__wrapped__ is torch.vmap is torch.func.vmap\n"
        "assert chunk_vmap is torch._functorch.apis.chunk_vmap\n"
        "assert control_flow.cond is torch.cond\n"
        "assert torch._C._are_functorch_transforms_active() is False\n"
        "torch.vmap(lambda x: seen.append("
        "torch._C._are_functorch_transforms_active()) or x)(torch.ones(2))\n"
        "assert seen == [True]"
    )
    subprocess.run([sys.executable, "-c", "seen = []\n" + code], check=True)


MODULE_STATE = {
    "nothing": lambda t: t.func.stack_module_state([]),
    "modes": lambda t: t.func.stack_module_state(
        [t.nn.Linear(2, 2), t.nn.Linear(2, 2).eval()]
    ),
    "classes": lambda t: t.func.stack_module_state([t.nn.Linear(2, 2), t.nn.Tanh()]),
    "requires_grad": lambda t: t.func.stack_module_state(
        [t.nn.Linear(2, 2), t.nn.Linear(2, 2).requires_grad_(False)]
    ),
    "no dictionary": lambda t: t.func.functional_call(t.nn.Tanh(), 3, t.ones(1)),
    "list of none": lambda t: t.func.functional_call(t.nn.Tanh(), [3], t.ones(1)),
    "name twice": lambda t: t.func.functional_call(
        t.nn.Linear(1, 1), ({"bias": t.ones(1)}, {"bias": t.ones(1)}), t.ones(1)
    ),
    "missing": lambda t: t.func.functional_call(
        t.nn.Linear(1, 1), {"bias": t.ones(1), "q": t.ones(1)}, t.ones(1), strict=True
    ),
}


@pytest.mark.parametrize("name", MODULE_STATE)
def test_modules_refused_alike(name) -> None:
    raised = []
    for library in (taeda, torch):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            MODULE_STATE[name](library)
        raised.append(caught)
    assert raised[0].type is raised[1].type
    assert str(raised[1].value).split(";")[0][:40] in str(raised[0].value)


def test_tied_weights() -> None:
    class Tied(taeda.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = taeda.nn.Linear(2, 2, bias=False)
            self.tied = self.layer.weight

        def forward(self, x):
            return self.layer(x) + x @ self.tied

    net, x, zeros = Tied(), taeda.ones(1, 2), taeda.zeros(2, 2)
    call = taeda.func.functional_call
    assert call(net, {"layer.weight": zeros}, x).tolist() == [[0, 0]]
    kept = call(net, {"layer.weight": zeros}, x, tie_weights=False)
    assert taeda.equal(kept, x @ net.tied)
    with pytest.raises(ValueError, match="which are tied"):
        call(net, {"layer.weight": zeros, "tied": zeros + 1}, x)


def test_batch_norm_without_statistics() -> None:
    net = taeda.nn.Sequential(taeda.nn.BatchNorm1d(3), taeda.nn.Linear(3, 2))
    assert taeda.func.replace_all_batch_norm_modules_(net) is net
    assert net[0].running_mean is None and not net[0].track_running_stats
    params = dict(net.named_parameters())
    x = taeda.randn(4, 5, 3)
    out = taeda.vmap(lambda x: taeda.func.functional_call(net, params, x))(x)
    assert taeda.allclose(out, taeda.stack([net(each) for each in x]), atol=1e-6)


def test_unwrapped() -> None:
    seen = []

    def f(v):
        seen.append((taeda.func.debug_unwrap(v), repr(v)))
        seen.append(repr(taeda.func.debug_unwrap(v, recurse=False)))
        return v.sum()

    x = taeda.ones(2, 3)
    taeda.vmap(taeda.func.grad(f))(x)
    assert taeda.equal(seen[0][0], x)
    assert seen[1].startswith("BatchedTensor(lvl=1, bdim=0")
    with pytest.raises(TypeError, match="expected a Tensor, got int"):
        taeda.func.debug_unwrap(3)


DEEP = {
    "vmap of grad of jvp": lambda t, x, w: t.vmap(
        t.func.grad(lambda v: t.func.jvp(t.sin, (v,), (w,))[1].sum())
    )(x),
    "grad of vmap of grad": lambda t, x, w: t.func.grad(
        lambda u: t.vmap(t.func.grad(loss(t)), (None, 0))(u, x).pow(2).sum()
    )(w),
    "jvp of vmap of vjp": lambda t, x, w: t.func.jvp(
        lambda u: t.vmap(lambda r: t.func.vjp(t.tanh, u * r)[1](r)[0])(x), (w,), (w,)
    ),
    "jacfwd of jacrev of grad": lambda t, x, w: t.func.jacfwd(
        t.func.jacrev(t.func.grad(lambda v: (v**4).sum()))
    )(w),
    "jvp of jvp of jvp": lambda t, x, w: t.func.jvp(
        lambda v: t.func.jvp(lambda v: t.func.jvp(t.exp, (v,), (w,))[1], (v,), (w,))[1],
        (w,),
        (w,),
    ),
    "vmap of hessian": lambda t, x, w: t.vmap(
        t.func.hessian(lambda v: (v * w).tanh().sum())
    )(x),
    "vmap of vmap of grad": lambda t, x, w: t.vmap(
        t.vmap(t.func.grad(lambda v, u: (v * u).exp()), (0, None)), (0, 0)
    )(x, x[:, 0]),
    "chunks of rows": lambda t, x, w: t.func.jacrev(t.sin, chunk_size=3)(w),
    "aux of columns": lambda t, x, w: t.vmap(
        lambda v: t.func.jacfwd(lambda u: (u.sin(), u * v), has_aux=True)(w)
    )(x),
    "aux of the inner one": lambda t, x, w: t.func.grad(
        lambda u: t.func.grad(lambda v: ((v**3).sum(), v * u), has_aux=True)(u)[1].sum()
    )(w),
}


@pytest.mark.parametrize("name", DEEP)
def test_nested_same(name) -> None:
    got = leaves(DEEP[name](taeda, *data(taeda)))
    want = leaves(DEEP[name](torch, *data(torch)))
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and not g.requires_grad
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-9, atol=1e-12)


def test_linearize_runs_the_function_once() -> None:
    calls = []
    value, line = taeda.func.linearize(lambda v: calls.append(1) or v**2, taeda.ones(2))
    assert line(taeda.ones(2)).tolist() == line(taeda.ones(2)).tolist() == [2, 2]
    assert len(calls) == 1
    lines = taeda.vmap(lambda v: taeda.func.linearize(taeda.sin, v)[1](v))
    x = taeda.tensor([[1.0, 2.0]])
    assert taeda.allclose(lines(x), x.cos() * x)
    for wrong in (taeda.ones(3), taeda.ones(2).double()):
        with pytest.raises(RuntimeError, match="tangent:0 with"):
            line(wrong)


def changed(v):
    """Views of a copy are written, one after the other and across each other."""
    y = v.clone()
    y[1] = v[2] * 2
    y[1:3].mul_(3)
    y[..., 0].add_(v[1])
    return y * y


IN_PLACE = {
    "itself": lambda f, g, x: g(x[0]),
    "grad": lambda f, g, x: f.grad(lambda v: g(v).sum())(x[0]),
    "jvp": lambda f, g, x: f.jvp(g, (x[0],), (x[1],)),
    "jacfwd": lambda f, g, x: f.jacfwd(g)(x[0]),
    "jacrev": lambda f, g, x: f.jacrev(g)(x[0]),
    "vmap": lambda f, g, x: f.vmap(g)(x),
    "vmap of grad": lambda f, g, x: f.vmap(f.grad(lambda v: g(v).sum()))(x),
    "vmap of vjp": lambda f, g, x: f.vmap(lambda v: f.vjp(g, v)[1](v)[0])(x),
    "vmap of jvp": lambda f, g, x: f.vmap(lambda v: f.jvp(g, (v,), (v,)))(x),
    "grad of vmap": lambda f, g, x: f.grad(lambda x: f.vmap(g)(x).sum())(x),
    "jvp of grad": lambda f, g, x: f.jvp(
        f.grad(lambda v: g(v).sum()), (x[0],), (x[1],)
    ),
    "jvp of jvp": lambda f, g, x: f.jvp(
        lambda v: f.jvp(g, (v,), (x[1],))[1], (x[0],), (x[1],)
    ),
    "vmap of jacrev": lambda f, g, x: f.vmap(f.jacrev(g))(x),
    "hessian": lambda f, g, x: f.hessian(lambda v: g(v).sum())(x[0]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_changes_in_place_through_views(name) -> None:
    """As the same function without changes in place, in every nesting."""

    def pure(v):
        y = taeda.stack([v[0] + v[1], v[2] * 6, v[2] * 3, v[3]])
        return y * y

    x = taeda.from_numpy(data(taeda)[0].numpy().copy())
    got, want = (leaves(IN_PLACE[name](taeda.func, g, x)) for g in (changed, pure))
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-12, atol=1e-12)


def test_tangents_are_left_alone() -> None:
    x, w = taeda.ones(3), taeda.tensor([1.0, 2.0, 3.0])
    for change in (
        lambda v: v.clone().mul_(2),
        lambda v: (v + 1).mul_(2),
        lambda v: v.contiguous().clone().sin_(),
    ):
        taeda.func.jvp(change, (x,), (w,))
        assert w.tolist() == [1, 2, 3]


REFUSED = {
    "aux of text": lambda t, x: t.func.grad(lambda v: (v.sum(), "a"), has_aux=True)(x),
    "aux of none": lambda t, x: t.func.vjp(lambda v: (v, None), x, has_aux=True),
    "aux of a column": lambda t, x: t.func.jacfwd(lambda v: (v, [v, 1]), has_aux=True)(
        x
    ),
    "nothing": lambda t, x: t.func.jacfwd(lambda v: ())(x),
    "none": lambda t, x: t.func.vjp(lambda v: None, x),
    "tangents in a list": lambda t, x: t.func.jvp(t.sin, (x,), [x]),
    "a place between": lambda t, x: t.func.grad(t.dot, argnums=(0.5,))(x, x),
    "retain_grad": lambda t, x: t.func.grad(lambda v: v.sin().retain_grad())(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_the_same_words(name) -> None:
    """PyTorch's message is ours, up to the values that ours shows."""
    told = []
    for library in (taeda, torch):
        with pytest.raises(RuntimeError) as caught:
            REFUSED[name](library, library.ones(2))
        told.append(str(caught.value)[:39])
    assert told[0] == told[1]


CONJUGATED = {
    "grad": lambda t, f, z: t.func.grad(f)(z[0]),
    "vmap": lambda t, f, z: t.vmap(f)(z),
    "jvp": lambda t, f, z: t.func.jvp(f, (z,), (z,)),
    "vmap of grad": lambda t, f, z: t.vmap(t.func.grad(f))(z),
}


@pytest.mark.parametrize("name", CONJUGATED)
def test_conjugated_views_are_known_inside(name) -> None:
    """`imag` of one asks whether it is conjugated and failed inside of transforms."""

    def program(library, mend):
        def part(v):
            w = v.conj()
            kinds.append((v.is_conj(), w.is_conj()))
            return mend(w).imag * w.real * w.abs()

        z = library.tensor([1 + 2j, 3 - 1j], dtype=library.complex128)
        return leaves(CONJUGATED[name](library, part, z))

    kinds: list = []
    got = program(taeda, lambda w: w)
    # PyTorch's vmap has no rule for the negative view that `imag` is.
    want = program(torch, lambda w: w.resolve_conj())
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_allclose(
            g.resolve_conj().numpy(), w.resolve_conj().numpy(), rtol=1e-12
        )
    assert kinds == [(False, True)] * 2


def test_rows_one_by_one_need_no_rules() -> None:
    class Counted(taeda.autograd.Function):
        @staticmethod
        def forward(x):
            return x.clone()

        @staticmethod
        def setup_context(ctx, inputs, output) -> None:
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * len(grad.nonzero())

    x = taeda.ones(2, 2)
    found = taeda.func.jacrev(Counted.apply, chunk_size=1)(x)
    assert found.reshape(4, 4).equal(taeda.eye(4))


@pytest.mark.parametrize(
    "around",
    [taeda.inference_mode, taeda.no_grad, lambda: _set_fwd_grad_enabled(False)],
)
def test_forward_mode_within_other_modes(around) -> None:
    x, along = taeda.arange(3.0), taeda.ones(3)

    def squares(x):
        return (x**2).sum()

    with around():
        assert taeda.func.jvp(squares, (x,), (along,))[1].item() == 6
        assert taeda.func.jacfwd(squares)(x).equal(2 * x)
        assert taeda.func.hessian(squares)(x).equal(2 * taeda.eye(3))

    def inside(x):
        with around():
            return (x**2).sum()

    moved = taeda.func.jvp(inside, (x,), (along,))[1].item()
    assert moved == (6 if around is taeda.no_grad else 0)
