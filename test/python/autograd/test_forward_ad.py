"""Forward mode: dual tensors within a level."""

from __future__ import annotations

import numpy
import pytest
import taeda
import torch
from taeda.autograd import forward_ad as fwd

LIBRARIES = (taeda, torch)


def pushed(t, function, *args):
    """(value, tangent or None) of a function at duals of the arguments."""
    forward = t.autograd.forward_ad
    with forward.dual_level():
        duals = [forward.make_dual(a, a * 2 + 1) for a in args]
        return tuple(forward.unpack_dual(function(*duals)))


PROGRAMS = {
    "product": lambda t, a, b: pushed(t, t.mul, a, b),
    "matmul": lambda t, a, b: pushed(t, lambda a, b: a @ b.mT, a, b),
    "softmax": lambda t, a, b: pushed(t, lambda a: a.softmax(1), a),
    "view": lambda t, a, b: pushed(t, lambda a: a.mT[1:].reshape(-1), a),
    "in place": lambda t, a, b: pushed(t, lambda a: t.zeros_like(b).add_(a).mul_(a), a),
    "into a view": lambda t, a, b: pushed(t, lambda a: into(t.ones_like(b), a), a),
    "view of it": lambda t, a, b: pushed(t, lambda a: view_after(t.ones_like(b), a), a),
    "copied": lambda t, a, b: pushed(t, lambda a: t.zeros_like(b).copy_(a), a),
    "set item": lambda t, a, b: pushed(t, lambda a: put(a.clone(), b), a),
    "detached": lambda t, a, b: pushed(t, lambda a: a.detach(), a),
    "data": lambda t, a, b: pushed(t, lambda a: a.data, a),
    "integers": lambda t, a, b: pushed(t, lambda a: a.argmax(), a),
    "constant": lambda t, a, b: pushed(t, lambda a: b, a),
    "switched off": lambda t, a, b: pushed(t, lambda a: off(t, a), a),
    "no_grad": lambda t, a, b: pushed(t, lambda a: in_no_grad(t, a), a),
}


def into(x, a):
    x[0].mul_(a[0])
    return x


def view_after(x, a):
    view = x[:1]
    x.mul_(a)
    return view


def put(a, b):
    a[0] = b[0]
    return a


def off(t, a):
    with t.autograd.forward_ad._set_fwd_grad_enabled(False):
        return a * 2


def in_no_grad(t, a):
    with t.no_grad():
        return a * 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_same(name) -> None:
    random = numpy.random.default_rng(0)
    arrays = random.normal(size=(3, 4)), random.normal(size=(3, 4))
    got, want = (PROGRAMS[name](t, *map(t.from_numpy, arrays)) for t in LIBRARIES)
    numpy.testing.assert_allclose(got[0].numpy(), want[0].numpy(), rtol=1e-12)
    assert (got[1] is None) == (want[1] is None), name
    if got[1] is not None:
        numpy.testing.assert_allclose(got[1].numpy(), want[1].numpy(), rtol=1e-12)


ONES = {t: t.ones(3) for t in LIBRARIES}
REFUSED_INSIDE = {
    "nested": (lambda f, x: f.enter_dual_level(), "Nested forward mode AD"),
    "shape": (lambda f, x: f.make_dual(x, x[:2]), r"size \[3\] .* size \[2\]"),
    "integers": (lambda f, x: f.make_dual(x.long(), x), "primal to be floating point"),
    "integer tangent": (
        lambda f, x: f.make_dual(x, x.long()),
        "tangent to be floating",
    ),
    "dual of dual": (
        lambda f, x: f.make_dual(f.make_dual(x, x), x),
        "already has a forward gradient at the same level",
    ),
    "level": (lambda f, x: f.make_dual(x, x, level=5), "Invalid level given"),
    "unpacked level": (
        lambda f, x: f.unpack_dual(f.make_dual(x, x), level=5),
        "Invalid level given",
    ),
    "exit": (lambda f, x: f.exit_dual_level(level=7), "was not the last one"),
    "number": (lambda f, x: f.make_dual(3.0, x), "is_floating_point"),
}


@pytest.mark.parametrize("name", REFUSED_INSIDE)
def test_refused_inside(name) -> None:
    program, text = REFUSED_INSIDE[name]
    kinds = []
    for t in LIBRARIES:
        forward = t.autograd.forward_ad
        with forward.dual_level(), pytest.raises(Exception) as caught:
            program(forward, ONES[t])
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
    with fwd.dual_level(), pytest.raises(kinds[0], match=text):
        program(fwd, ONES[taeda])


def test_outside() -> None:
    x = taeda.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fwd.make_dual(x, x)
    with pytest.raises(RuntimeError):
        fwd.exit_dual_level()
    value, tangent = fwd.unpack_dual(x)
    assert value is x and tangent is None
    with fwd.dual_level():
        dual = fwd.make_dual(x, x)
    assert fwd.unpack_dual(dual).tangent is None
    assert (dual + 1).tolist() == [2, 2]
    with fwd.dual_level():
        assert fwd.unpack_dual(dual * 2).tangent is None, "of a level that ended"


def test_an_exception_ends_the_level() -> None:
    with pytest.raises(KeyError), fwd.dual_level():
        raise KeyError
    assert fwd.enter_dual_level() == 0
    fwd.exit_dual_level()


def test_a_decorated_function_has_a_level_of_its_own() -> None:
    @fwd.dual_level()
    def push(x):
        return fwd.unpack_dual(fwd.make_dual(x, taeda.ones(2)) ** 2).tangent

    for _ in range(2):
        assert push(taeda.tensor([1.0, 2.0])).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="no level exists"):
        fwd.make_dual(taeda.ones(1), taeda.ones(1))


def test_text() -> None:
    x = taeda.ones(2)
    with fwd.dual_level():
        dual = fwd.make_dual(x, x * 2)
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([2., 2.]))"
    assert repr(dual) == "tensor([1., 1.])"


def test_a_module_with_duals_as_parameters() -> None:
    module = taeda.nn.Linear(3, 2)
    params = {name: p.detach() for name, p in module.named_parameters()}
    tangents = {name: taeda.ones_like(p) for name, p in params.items()}
    for name in params:
        delattr(module, name)
    x = taeda.arange(3.0)
    with fwd.dual_level():
        for name, p in params.items():
            setattr(module, name, fwd.make_dual(p, tangents[name]))
        value, tangent = fwd.unpack_dual(module(x))
    assert taeda.allclose(value, params["weight"] @ x + params["bias"])
    assert tangent.tolist() == [4, 4]


def test_forward_over_reverse() -> None:
    """Backward's gradients are dual: the Hessian's product with the tangent."""
    x, v = (
        taeda.tensor([1.0, 2.0], dtype=taeda.float64),
        taeda.tensor([3.0, 4.0]).double(),
    )
    with fwd.dual_level():
        leaf = fwd.make_dual(x.clone().requires_grad_(), v)
        (grad,) = taeda.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
        assert fwd.unpack_dual(grad).tangent.tolist() == [18, 48]
    with fwd.dual_level():
        leaf = fwd.make_dual(x.clone().requires_grad_(), v)
        (leaf**3).sum().backward()


def test_reverse_over_forward() -> None:
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    with fwd.dual_level():
        tangent = fwd.unpack_dual(fwd.make_dual(x, taeda.ones(2)) ** 3).tangent
    (grad,) = taeda.autograd.grad(tangent.sum(), x)
    assert grad.tolist() == [6, 12]


def test_out_is_refused() -> None:
    x = taeda.ones(2)
    with fwd.dual_level(), pytest.raises(NotImplementedError, match="out="):
        dual = fwd.make_dual(x, x)
        taeda.add(dual, dual, out=taeda.zeros(2))


def test_the_current_level_is_minus_one_outside_of_a_level():
    assert fwd._current_level == -1
    with fwd.dual_level():
        assert fwd._current_level == 0
    assert fwd._current_level == -1


@pytest.mark.parametrize(
    "function",
    [taeda.sign, taeda.round, taeda.bernoulli, taeda.poisson, lambda x: x // 1],
)
def test_a_derivative_that_is_zero_is_a_tangent(function):
    with fwd.dual_level():
        x = fwd.make_dual(taeda.tensor([0.3, 0.7]), taeda.ones(2))
        assert fwd.unpack_dual(function(x)).tangent.tolist() == [0, 0]
        # What depends on the argument's shape alone has none.
        assert fwd.unpack_dual(taeda.rand_like(x)).tangent is None


def test_tangents_end_with_detach_and_are_no_duals():
    x, t = taeda.rand(2), taeda.ones(2)
    with fwd.dual_level():
        dual = fwd.make_dual(x, t) * 1
        dual.detach_()
        assert fwd.unpack_dual(dual * 2).tangent is None
        with pytest.raises(RuntimeError, match="forward gradient at the same level"):
            fwd.make_dual(x, fwd.make_dual(x, t))
