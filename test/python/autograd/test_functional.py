"""autograd.functional, batches of gradients, and gradcheck's modes."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch
from taeda.autograd import gradcheck, gradgradcheck

LIBRARIES = (taeda, torch)


def leaves(tree) -> list:
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in leaves(each)]
    return [tree]


def cubes(x):
    return (x**3).sum()


PROGRAMS = {
    "rows": lambda t, F, x, y: F.jacobian(t.sin, x),
    "rows at once": lambda t, F, x, y: F.jacobian(t.sin, x, vectorize=True),
    "columns": lambda t, F, x, y: F.jacobian(
        t.sin, x, vectorize=True, strategy="forward-mode"
    ),
    "two at once": lambda t, F, x, y: F.jacobian(
        lambda a, b: (a * b, a.sum()), (x, y), vectorize=True
    ),
    "two by columns": lambda t, F, x, y: F.jacobian(
        lambda a, b: (a * b, a.sum()), (x, y), vectorize=True, strategy="forward-mode"
    ),
    "unused": lambda t, F, x, y: F.jacobian(lambda a, b: a * 2, (x, y), vectorize=True),
    "constant": lambda t, F, x, y: F.jacobian(
        lambda a: t.ones(2, dtype=a.dtype), x, vectorize=True
    ),
    "constant by columns": lambda t, F, x, y: F.jacobian(
        lambda a: t.ones(2, dtype=a.dtype), x, vectorize=True, strategy="forward-mode"
    ),
    "hessian": lambda t, F, x, y: F.hessian(cubes, x),
    "hessian at once": lambda t, F, x, y: F.hessian(cubes, x, vectorize=True),
    "hessian by columns": lambda t, F, x, y: F.hessian(
        cubes, x, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
    "hessian of two": lambda t, F, x, y: F.hessian(
        lambda a, b: (a * a * b).sum(), (x, y), vectorize=True
    ),
    "jvp": lambda t, F, x, y: F.jvp(t.sin, x, y),
    "vjp": lambda t, F, x, y: F.vjp(t.sin, x, y),
    "hvp": lambda t, F, x, y: F.hvp(cubes, x, y),
    "vhp": lambda t, F, x, y: F.vhp(cubes, x, y),
    "batch": lambda t, F, x, y: batched(t, x, t.stack([y, y * 2])),
    "batch of two": lambda t, F, x, y: t.autograd.grad(
        [(leaf := x.clone().requires_grad_()).sin(), leaf.sum()],
        leaf,
        [t.stack([y, y * 2]), t.ones(2, dtype=x.dtype)],
        is_grads_batched=True,
    ),
    "batch with graph": lambda t, F, x, y: t.autograd.grad(
        t.autograd.grad(
            cubes(leaf := x.clone().requires_grad_()) * leaf,
            leaf,
            t.stack([y, y]),
            is_grads_batched=True,
            create_graph=True,
        )[0].sum(),
        leaf,
    ),
}


def batched(t, x, rows):
    leaf = x.clone().requires_grad_()
    return t.autograd.grad(leaf.sin(), leaf, rows, is_grads_batched=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name) -> None:
    random = numpy.random.default_rng(0)
    x, y = random.normal(size=3), random.normal(size=3)
    got, want = (
        leaves(
            PROGRAMS[name](t, t.autograd.functional, t.from_numpy(x), t.from_numpy(y))
        )
        for t in LIBRARIES
    )
    for g, w in zip(got, want, strict=True):
        numpy.testing.assert_allclose(
            g.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-12
        )


def test_jacobian_with_graph() -> None:
    x = taeda.ones(2, dtype=taeda.float64, requires_grad=True)
    for vectorize in (False, True):
        rows = taeda.autograd.functional.jacobian(
            lambda v: v**3, x, create_graph=True, vectorize=vectorize
        )
        (grad,) = taeda.autograd.grad(rows.sum(), x)
        assert grad.tolist() == [6, 6]


REFUSED = {
    "strategy": lambda t, F, x: F.jacobian(t.sin, x, strategy="x"),
    "columns one by one": lambda t, F, x: F.jacobian(t.sin, x, strategy="forward-mode"),
    "columns with graph": lambda t, F, x: F.jacobian(
        t.sin, x, vectorize=True, strategy="forward-mode", create_graph=True
    ),
    "strict columns": lambda t, F, x: F.jacobian(
        t.sin, x, vectorize=True, strategy="forward-mode", strict=True
    ),
    "strict at once": lambda t, F, x: F.jacobian(t.sin, x, vectorize=True, strict=True),
    "hessian's strategy": lambda t, F, x: F.hessian(
        cubes, x, outer_jacobian_strategy="x"
    ),
    "hessian one by one": lambda t, F, x: F.hessian(
        cubes, x, outer_jacobian_strategy="forward-mode"
    ),
    "batch of nothing": lambda t, F, x: t.autograd.grad(
        x.requires_grad_().sin(), x, None, is_grads_batched=True
    ),
    "batch's shape": lambda t, F, x: batched(t, x, t.ones(2, 4)),
    "0-dim": lambda t, F, x: batched(t, x, t.ones(())),
    "no batch": lambda t, F, x: batched(t, x, t.ones(3)),
    "batches differ": lambda t, F, x: t.autograd.grad(
        [x.requires_grad_().sin(), x.cos()],
        x,
        [t.ones(2, 3), t.ones(4, 3)],
        is_grads_batched=True,
    ),
}


def constant(x):
    """Does not depend on x, with a graph nevertheless."""
    return x.long().float().requires_grad_().clone()


# What PyTorch says, up to the word where the wording is our own.
SAID = {
    "The inputs given to jvp must be either a Tensor": lambda F, x: F.jvp(
        cubes, (x, 2), x
    ),
    "The outputs of the user-provided function given to vjp must": lambda F, x: F.vjp(
        lambda v: (v, "v"), x, x
    ),
    "The inputs given to hessian must be either a Tensor": lambda F, x: F.hessian(
        cubes, (x, 2)
    ),
    "The outputs of the user-provided function given to jacobian must": (
        lambda F, x: F.jacobian(lambda v: (v, 1), x)
    ),
    "The vector v can only be None if the user-provided function returns": (
        lambda F, x: F.vjp(lambda v: v * 2, x)
    ),
    "The vector v can only be None if the input to the user-provided function": (
        lambda F, x: F.jvp(cubes, x)
    ),
    "The given v should contain a single Tensor.": lambda F, x: F.jvp(cubes, x, (x, x)),
    "v has invalid size: should be": lambda F, x: F.jvp(cubes, x, x[:2]),
    "Output 0 of the user-provided function does not require gradients.": (
        lambda F, x: F.jacobian(lambda v: v.detach(), x, strict=True)
    ),
    "Output 0 of the user-provided function is independent of input 0.": (
        lambda F, x: F.jacobian(constant, x, strict=True)
    ),
    "The output of the user-provided function is independent of input 0": (
        lambda F, x: F.vjp(constant, x, x, strict=True)
    ),
    "The jacobian of the user-provided function is independent of input 0.": (
        lambda F, x: F.vjp(
            lambda v: v.clone(), x, x.detach(), create_graph=True, strict=True
        )
    ),
    "jacobian of the user-provided function with respect to input 0 is": (
        lambda F, x: F.hvp(lambda v: v.sum(), x, x, strict=True)
    ),
    "Entry 1 in v has invalid size": lambda F, x: F.jvp(
        lambda a, b: a * b, (x, x), (x, x[:1])
    ),
}


@pytest.mark.parametrize("words", SAID)
def test_what_is_said(words) -> None:
    kinds = []
    for t in LIBRARIES:
        x = t.ones(3, requires_grad=True)
        with pytest.raises((RuntimeError, TypeError)) as caught:
            SAID[words](t.autograd.functional, x)
        assert words in str(caught.value)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name) -> None:
    kinds = []
    for t in LIBRARIES:
        with pytest.raises(Exception) as caught:
            REFUSED[name](t, t.autograd.functional, t.ones(3))
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


# gradcheck -------------------------------------------------------------------


def leaf(*values, dtype=taeda.float64):
    return taeda.tensor(values, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_in_every_mode(fast) -> None:
    modes = {"check_forward_ad": True, "check_batched_grad": True, "fast_mode": fast}
    x = leaf(0.3, -1.2, 2.0)
    assert gradcheck(taeda.sin, x, check_batched_forward_grad=True, **modes)
    assert gradcheck(taeda.mul, (x, leaf(1.0, 2.0, 3.0)), **modes)
    z = leaf(1 + 2j, 3 - 1j, dtype=taeda.complex128)
    assert gradcheck(lambda z: z * z.conj() + z, z, **modes)
    assert gradcheck(lambda x: taeda.complex(x, x * x), x, **modes)
    assert gradcheck(taeda.sin, x, check_backward_ad=False, check_forward_ad=True)
    assert gradgradcheck(taeda.sin, x, check_fwd_over_rev=True, fast_mode=fast)


def function(backward, jvp):
    class Doubled(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    Doubled.backward = staticmethod(backward)
    Doubled.jvp = staticmethod(jvp)
    return Doubled.apply


def test_a_wrong_tangent_is_found() -> None:
    wrong = function(lambda ctx, g: g * 2, lambda ctx, t: t * 3)
    for fast in (False, True):
        with pytest.raises(
            taeda.autograd.GradcheckError, match="forward mode mismatch"
        ):
            gradcheck(wrong, leaf(1.0, 2.0), check_forward_ad=True, fast_mode=fast)
    assert gradcheck(wrong, leaf(1.0, 2.0))


def test_a_wrong_batch_is_found() -> None:
    def backward(ctx, grad):
        return grad * (3 if taeda._C._functorch.is_batchedtensor(grad) else 2)

    wrong = function(backward, lambda ctx, t: t * 2)
    assert gradcheck(wrong, leaf(1.0, 2.0))
    with pytest.raises(taeda.autograd.GradcheckError, match="batched gradient"):
        gradcheck(wrong, leaf(1.0, 2.0), check_batched_grad=True)


@pytest.mark.parametrize(
    "options",
    [
        {"check_backward_ad": False},
        {"check_batched_forward_grad": True},
        {
            "check_backward_ad": False,
            "check_forward_ad": True,
            "check_batched_grad": True,
        },
    ],
)
def test_options_that_do_not_go_together(options) -> None:
    with pytest.raises(AssertionError):
        gradcheck(taeda.sin, leaf(1.0), **options)
