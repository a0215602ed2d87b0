"""gradcheck and taeda.autograd.functional."""

from __future__ import annotations

import importlib

import pytest
import taeda
from taeda.autograd import Function, functional, gradcheck, gradgradcheck
from taeda.autograd.gradcheck import GradcheckError


def leaf(*values):
    return taeda.tensor(values, dtype=taeda.float64, requires_grad=True)


class WrongCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad + 0.01


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck(fast):
    x, y = leaf(0.5, 1.5), leaf(2.0, -1.0)
    assert gradcheck(lambda a, b: (a * b, a.exp()), (x, y), fast_mode=fast)
    with pytest.raises(GradcheckError, match="numerical:"):
        gradcheck(WrongCube.apply, (x,), fast_mode=fast)
    assert not gradcheck(WrongCube.apply, (x,), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input"):
        gradcheck(lambda a: a, (x.detach(),))


def test_the_module_is_the_function():
    import taeda.autograd.gradcheck

    assert taeda.autograd.gradcheck(lambda a: a * a, (leaf(1.0),))


def test_the_worst_entry_is_named():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            g = grad * 2
            g[1] = g[1] * 50
            return g

    with pytest.raises(GradcheckError, match="output element 1 and input element 1"):
        gradcheck(Wrong.apply, (leaf(1.0, 2.0, 3.0),))


def test_gradgradcheck():
    x, y = leaf(0.5, 1.5), leaf(2.0, -1.0)
    assert gradgradcheck(lambda a, b: a * b * a.exp(), (x, y))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongHessian.apply, (x,))


class WrongHessian(Function):
    """The gradient is right, its own gradient is cut off."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad


def test_jacobian_and_hessian():
    x = leaf(1.0, 2.0)
    assert functional.jacobian(lambda a: a * a, x).tolist() == [[2, 0], [0, 4]]
    rows = functional.jacobian(lambda a, b: a * b, (x, leaf(3.0, 5.0)))
    assert rows[0].tolist() == [[3, 0], [0, 5]]
    assert rows[1].tolist() == [[1, 0], [0, 2]]
    cube = functional.hessian(lambda a: (a * a * a).sum(), x)
    assert cube.tolist() == [[6, 0], [0, 12]]


def test_products():
    x, v = leaf(1.0, 2.0), taeda.tensor([1.0, 10.0], dtype=taeda.float64)
    out, product = functional.vjp(lambda a: a * a, x, v)
    assert out.tolist() == [1, 4] and product.tolist() == [2, 40]
    out, product = functional.jvp(lambda a: a * a, x, v)
    assert out.tolist() == [1, 4] and product.tolist() == [2, 40]
    for function in (functional.hvp, functional.vhp):
        out, product = function(lambda a: (a * a * a).sum(), x, v)
        assert out.item() == 9 and product.tolist() == [6, 120]
    assert not product.requires_grad


def test_strict_mode():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.jacobian(lambda a: taeda.ones(1) * 2, x, strict=True)
    assert functional.jacobian(lambda a: taeda.ones(1) * 2, x).tolist() == [[0]]


def test_variable_stays_callable_beside_its_module() -> None:
    importlib.import_module("taeda.autograd.variable")
    with pytest.raises(RuntimeError, match=r"variable\(\.\.\.\) is deprecated"):
        taeda.autograd.variable(1)


def test_gradcheck_calls_functions_that_use_the_graph():
    def function(a):
        out = a * a
        out.register_hook(lambda grad: grad)
        (inner,) = taeda.autograd.grad(out.sum(), a, create_graph=True)
        return inner * a

    x = taeda.randn(3, dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(function, (x,))
    assert taeda.autograd.gradcheck(function, (x,), fast_mode=True)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("fast", [False, True])
def test_sparse_inputs(layout, fast):
    dense = taeda.tensor([[1.0, 0, -2], [0, 0, 3]], dtype=taeda.float64)
    x = dense.to_sparse(layout=getattr(taeda, layout)).requires_grad_()
    y = taeda.rand(2, 3, dtype=taeda.float64)

    def sines(t):
        return t.to_dense().sin() * y

    def wrong(t):
        return sines(t) + 2 * sines(t.detach())

    assert taeda.autograd.gradcheck(sines, (x,), masked=True, fast_mode=fast)
    with pytest.raises(GradcheckError, match="mismatch"):
        taeda.autograd.gradcheck(wrong, (x,), masked=True, fast_mode=fast)
    assert x.detach().to_dense().tolist() == dense.tolist()


def test_sparse_inputs_with_dense_dims():
    x = taeda.rand(3, 2, dtype=taeda.float64).to_sparse(1).requires_grad_()
    square = lambda t: t.to_dense() ** 2
    assert taeda.autograd.gradcheck(square, (x,), masked=True)


def test_sparse_outputs_are_refused():
    x = taeda.rand(2, 2, dtype=taeda.float64, requires_grad=True)
    with pytest.raises(ValueError, match="Sparse output is not supported"):
        taeda.autograd.gradcheck(lambda t: t.to_sparse(), (x,))


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_with_results_that_have_no_derivative(fast):
    def func(a):
        return a.detach() * 3, a * a

    assert gradcheck(func, (leaf(1.0, 2.0),), check_forward_ad=True, fast_mode=fast)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("what", ["shape", "dtype"])
def test_gradcheck_of_functions_that_change_their_results(what, fast):
    def func(a):
        if a.item() < 1:
            return a
        return taeda.cat([a, a]) if what == "shape" else a.float()

    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inpu"):
        gradcheck(func, (leaf(1.0),), fast_mode=fast)


def test_gradcheck_names_the_imaginary_part():
    def func(a):
        b = taeda.complex(a, a)
        b.register_hook(lambda g: g + 0.01)
        return b

    with pytest.raises(GradcheckError, match="imaginary part of complex outputs only"):
        gradcheck(func, (leaf(1.0, 2.0),))


@pytest.mark.parametrize("fast", [False, True])
def test_all_inputs_have_tangents_and_need_no_gradient(fast):
    from taeda.autograd import forward_ad

    seen = []

    def func(a, b):
        if forward_ad._current_level >= 0:
            seen.append(forward_ad.unpack_dual(b).tangent is not None)
            seen.append(not (a.requires_grad or b.requires_grad))
            primal, tangent = forward_ad.unpack_dual(b)
            b = forward_ad.make_dual(primal, tangent * 1.1)
        return a + b, b

    text = "forward mode mismatch for output 0 with respect to input 1"
    with pytest.raises(GradcheckError, match=text):
        gradcheck(func, (leaf(1.0), leaf(2.0)), check_forward_ad=True, fast_mode=fast)
    assert seen and all(seen)


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient")
def test_the_fast_check_allows_for_as_many_errors_as_it_adds_up():
    x = taeda.randn(4, 2000, requires_grad=True)
    norm = taeda.nn.LayerNorm(2000, elementwise_affine=False)
    assert gradcheck(norm, (x,), fast_mode=True)
