"""autograd.Function under function transforms: equal to PyTorch's, in every nesting."""

from __future__ import annotations

import functools

import numpy
import pytest
import taeda
import torch
from taeda.autograd import forward_ad

LIBRARIES = (taeda, torch)


@functools.cache
def functions(t) -> dict:
    """The same custom functions for a library, by name."""
    exp = exponentials(t)
    return exp | with_marks(t) | with_faults(t, exp["Exp"], exp["ExpRule"])


def classes(names: dict) -> dict:
    """The functions among local variables."""
    return {n: f for n, f in names.items() if isinstance(f, type) and n != "Function"}


def exponentials(t) -> dict:
    """One result, or one of two tensors and a number."""
    Function = t.autograd.Function

    class Exp(Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0]

    class ExpGenerated(Exp):
        generate_vmap_rule = True

    class ExpRule(Exp):
        @staticmethod
        def vmap(info, in_dims, x):
            assert info.batch_size == x.shape[in_dims[0]]
            assert info.randomness == "error"
            return ExpRule.apply(x), in_dims[0]

    class Weighted(Function):
        """a * b * k: two tensors and a number."""

        generate_vmap_rule = True

        @staticmethod
        def forward(a, b, k):
            return a * b * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, b, ctx.k = inputs
            ctx.save_for_backward(a, b)
            ctx.save_for_forward(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            first = grad * b * ctx.k if ctx.needs_input_grad[0] else None
            second = grad * a * ctx.k if ctx.needs_input_grad[1] else None
            return first, second, None

        @staticmethod
        def jvp(ctx, da, db, _):
            a, b = ctx.saved_tensors
            return (da * b + a * db) * ctx.k

    class Once(Exp):
        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    return classes(locals())


def with_marks(t) -> dict:
    """What ctx is told of arguments and results."""
    Function = t.autograd.Function

    class Twice(Function):
        """Changes its argument in place."""

        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2)

    class WithIndex(Function):
        """Results without gradient beside one with."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2, x.argmax(), x * 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1], output[2])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, grad, *others):
            assert others[0] is None
            return grad * 2

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * 2, None, None

    class Same(Function):
        """Returns its argument; its backward is its own."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    return classes(locals())


def with_faults(t, Exp, ExpRule) -> dict:
    """What transforms refuse."""

    class Old(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class NoRule(Exp):
        pass

    class BothRules(ExpRule):
        generate_vmap_rule = True

    class OneResult(Exp):
        @staticmethod
        def vmap(info, in_dims, x):
            return x

    class WrongDims(Exp):
        @staticmethod
        def vmap(info, in_dims, x):
            return x, (0, 0)

    names = classes(locals())
    return {n: f for n, f in names.items() if n not in ("Exp", "ExpRule")}


def data(t) -> tuple:
    random = numpy.random.default_rng(0)
    x, v = random.normal(size=(3, 4)), random.normal(size=4)
    return t.from_numpy(x), t.from_numpy(v)


PROGRAMS = {
    "grad": lambda t, f, x, v: t.func.grad(lambda v: f.Exp.apply(v).sum())(v),
    "grad of grad": lambda t, f, x, v: t.func.grad(
        lambda u: t.func.grad(lambda v: f.Exp.apply(v).sum())(u).sum()
    )(v),
    "jvp": lambda t, f, x, v: t.func.jvp(f.Exp.apply, (v,), (v,)),
    "jvp of grad": lambda t, f, x, v: t.func.jvp(
        t.func.grad(lambda v: f.Exp.apply(v).sum()), (v,), (v,)
    ),
    "grad of jvp": lambda t, f, x, v: t.func.grad(
        lambda v: t.func.jvp(f.Exp.apply, (v,), (v,))[1].sum()
    )(v),
    "vmap": lambda t, f, x, v: t.vmap(f.ExpGenerated.apply)(x),
    "vmap by its rule": lambda t, f, x, v: t.vmap(f.ExpRule.apply, 1, 1)(x),
    "vmap of grad": lambda t, f, x, v: t.vmap(
        t.func.grad(lambda v: f.ExpGenerated.apply(v).sum())
    )(x),
    "grad of vmap": lambda t, f, x, v: t.func.grad(
        lambda x: t.vmap(f.ExpGenerated.apply)(x).sum()
    )(x),
    "grad of vmap by its rule": lambda t, f, x, v: t.func.grad(
        lambda x: t.vmap(f.ExpRule.apply)(x).sum()
    )(x),
    "jvp of vmap": lambda t, f, x, v: t.func.jvp(
        lambda x: t.vmap(f.ExpGenerated.apply)(x), (x,), (x,)
    ),
    "vmap of jvp": lambda t, f, x, v: t.vmap(
        lambda v: t.func.jvp(f.ExpGenerated.apply, (v,), (v,))
    )(x),
    "vmap of vmap": lambda t, f, x, v: t.vmap(t.vmap(f.ExpGenerated.apply))(x),
    "vmap of grad of jvp": lambda t, f, x, v: t.vmap(
        t.func.grad(lambda v: t.func.jvp(f.ExpGenerated.apply, (v,), (v,))[1].sum())
    )(x),
    "jacrev": lambda t, f, x, v: t.func.jacrev(f.ExpGenerated.apply)(v),
    "jacfwd": lambda t, f, x, v: t.func.jacfwd(f.ExpGenerated.apply)(v),
    "hessian": lambda t, f, x, v: t.func.hessian(
        lambda v: f.ExpGenerated.apply(v).sum()
    )(v),
    "twice jacrev": lambda t, f, x, v: t.func.jacrev(
        t.func.jacrev(lambda v: f.ExpGenerated.apply(v).sum())
    )(v),
    "summed for one without batch": lambda t, f, x, v: t.func.grad(
        lambda x, v: t.vmap(f.Weighted.apply, (0, None, None))(x, v, 3.0).sum(), (0, 1)
    )(x, v),
    "one without batch": lambda t, f, x, v: t.vmap(
        t.func.grad(lambda v, x: f.Weighted.apply(x, v, 3.0).sum()), (None, 0)
    )(v, x),
    "jvp of two": lambda t, f, x, v: t.func.jvp(
        lambda v: t.vmap(f.Weighted.apply, (0, None, None))(x, v, 3.0), (v,), (v,)
    ),
    "dirty": lambda t, f, x, v: t.func.grad(
        lambda v: (f.Twice.apply(v.clone()) ** 2).sum()
    )(v),
    "dirty jvp": lambda t, f, x, v: t.func.jvp(
        lambda v: f.Twice.apply(v.clone()) ** 2, (v,), (v,)
    ),
    "other results": lambda t, f, x, v: t.func.grad(
        lambda v: sum(o.sum() for o in f.WithIndex.apply(v)[::2])
    )(v),
    "other results mapped": lambda t, f, x, v: t.vmap(f.WithIndex.apply)(x),
    "vmap of grad of other results": lambda t, f, x, v: t.vmap(
        t.func.grad(lambda v: f.WithIndex.apply(v)[0].sum())
    )(x),
    "jvp of other results": lambda t, f, x, v: t.func.jvp(
        lambda v: f.WithIndex.apply(v)[0], (v,), (v,)
    ),
    "once": lambda t, f, x, v: t.func.grad(lambda v: f.Once.apply(v).sum())(v),
    "same": lambda t, f, x, v: t.func.grad(lambda v: f.Same.apply(v).sum())(v),
    "same mapped": lambda t, f, x, v: t.vmap(f.Same.apply)(x),
    "grad of same mapped": lambda t, f, x, v: t.func.grad(
        lambda x: t.vmap(f.Same.apply)(x).sum()
    )(x),
    "of no wrapper": lambda t, f, x, v: t.vmap(lambda r: f.ExpGenerated.apply(v) + r)(
        x
    ),
    "captured": lambda t, f, x, v: t.func.grad(
        lambda u: (f.Weighted.apply(u, v, 2.0)).sum()
    )(v),
    "autograd outside": lambda t, f, x, v: t.autograd.grad(
        t.vmap(f.ExpGenerated.apply)(leaf := x.clone().requires_grad_()).sum(), leaf
    ),
}


class Named:
    """Attributes for the keys of a dictionary."""

    def __init__(self, **entries) -> None:
        self.__dict__.update(entries)


def leaves(tree) -> list:
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in leaves(each)]
    return [tree]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name) -> None:
    got, want = (
        leaves(PROGRAMS[name](t, Named(**functions(t)), *data(t))) for t in LIBRARIES
    )
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_allclose(
            g.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-12
        )


REFUSED = {
    "old under vmap": (lambda t, f, x: t.vmap(f.Old.apply)(x), "setup_context"),
    "old under grad": (
        lambda t, f, x: t.func.grad(lambda v: f.Old.apply(v).sum())(x),
        "setup_context",
    ),
    "old under jvp": (
        lambda t, f, x: t.func.jvp(f.Old.apply, (x,), (x,)),
        "setup_context",
    ),
    "no rule": (
        lambda t, f, x: t.vmap(f.NoRule.apply)(x),
        "does not have vmap support",
    ),
    "both rules": (
        lambda t, f, x: t.vmap(f.BothRules.apply)(x),
        "has both generate_vmap_rule=True and an overridden vmap",
    ),
    "one result": (
        lambda t, f, x: t.vmap(f.OneResult.apply)(x),
        "vmap staticmethod to have two returns",
    ),
    "wrong dims": (
        lambda t, f, x: t.vmap(f.WrongDims.apply)(x),
        "returned an incompatible",
    ),
    "no jvp": (
        lambda t, f, x: t.func.jvp(f.Same.apply, (x,), (x,)),
        "You must implement the jvp function",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name) -> None:
    program, text = REFUSED[name]
    kinds = []
    for t in LIBRARIES:
        with pytest.raises(Exception, match=text) as caught:
            program(t, Named(**functions(t)), t.ones(2, 3))
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
    assert taeda._C._functorch.depth() == 0


def test_a_backward_for_once_is_followed_by_the_levels_outside() -> None:
    """The graph of the level ends at it; what it calls is seen outside."""
    once = functions(taeda)["Once"]
    x = taeda.tensor([0.0, 1.0])
    inner = taeda.func.grad(lambda v: once.apply(v).sum())
    assert taeda.equal(taeda.func.grad(lambda u: inner(u).sum())(x), x.exp())


def test_an_error_in_forward_leaves_no_level() -> None:
    class Broken(taeda.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            raise KeyError("broken")

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    for call in (
        lambda: taeda.vmap(Broken.apply)(taeda.ones(2, 3)),
        lambda: taeda.func.grad(lambda v: Broken.apply(v).sum())(taeda.ones(3)),
        lambda: taeda.func.jvp(Broken.apply, (taeda.ones(3),), (taeda.ones(3),)),
    ):
        with pytest.raises(KeyError, match="broken"):
            call()
        assert taeda._C._functorch.depth() == 0
        assert taeda.is_grad_enabled()


# Forward mode without a transform --------------------------------------------


class OldWithJvp(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_forward(x)
        return x * x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return 2 * ctx.saved_tensors[0] * tangent * ctx.factor


def tangent_of(function, *args):
    x = taeda.tensor([1.0, 3.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, taeda.ones(2))
        return forward_ad.unpack_dual(function.apply(dual, *args)).tangent


def test_dual_level() -> None:
    assert tangent_of(OldWithJvp, 2.0).tolist() == [4, 12]
    exp = functions(taeda)["Exp"]
    assert taeda.equal(tangent_of(exp), taeda.tensor([1.0, 3.0]).exp())


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda t: t.sum(), RuntimeError, r"different size .* \[2\] .* \[\]"),
        (lambda t: (t, t), RuntimeError, "expected 1 but got 2"),
        (lambda t: 3, RuntimeError, r"expected Variable or None \(got int\)"),
    ],
)
def test_a_wrong_jvp(result, error, text) -> None:
    class Wrong(OldWithJvp):
        @staticmethod
        def jvp(ctx, tangent, _):
            return result(tangent)

    with pytest.raises(error, match=text):
        tangent_of(Wrong, 2.0)
