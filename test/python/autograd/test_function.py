"""Custom functions."""

from __future__ import annotations

import weakref

import pytest
import taeda
from taeda.autograd import Function
from taeda.autograd.function import once_differentiable


def leaf(*values):
    return taeda.tensor([float(v) for v in values], requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad * ctx.scale, None


def test_forward_and_backward():
    x = leaf(1, 3)
    y = Square.apply(x, 2.0)
    assert y.requires_grad and type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.name() == "SquareBackward"
    y.sum().backward()
    assert x.grad.tolist() == [4, 12]


def test_no_graph_without_need():
    assert not Square.apply(taeda.ones(2)).requires_grad
    with taeda.no_grad():
        assert not Square.apply(leaf(1)).requires_grad


def test_double_backward():
    x = leaf(3)
    (g,) = taeda.autograd.grad(Square.apply(x), x, create_graph=True)
    (gg,) = taeda.autograd.grad(g, x)
    assert gg.item() == 2


def test_saved_outputs():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return y * grad

    x = leaf(0.5)
    y = Exp.apply(x)
    (g,) = taeda.autograd.grad(y, x, create_graph=True)
    (gg,) = taeda.autograd.grad(g, x, create_graph=True)
    assert g.item() == gg.item() == y.item()


def test_saved_tensors_are_freed():
    x = leaf(1)
    y = Square.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_needs_input_grad_and_setup_context():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(x, y, times=1):
            return x * y * times

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((len(inputs), ctx.needs_input_grad))
            ctx.save_for_backward(*inputs[:2])

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            seen.append(ctx.needs_input_grad)
            return grad * y, grad * x, None

    x = leaf(2)
    Product.apply(x, taeda.tensor([5.0])).backward()
    assert x.grad.item() == 5
    assert seen == [(3, (True, False, False)), (True, False, False)]
    assert Product.apply(x, x, times=3).item() == 12


def test_several_outputs_and_materialized_grads():
    got = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, fill):
            ctx.set_materialize_grads(fill)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            got.append((a, b))
            return (a if a is not None else 0) + (b if b is not None else 0), None

    x = leaf(1)
    a, _ = Two.apply(x, True)
    a.backward()
    assert got[-1][1].tolist() == [0]
    a, _ = Two.apply(x, False)
    a.backward()
    assert got[-1][1] is None


def test_mark_dirty():
    class Triple(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(3)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = leaf(1)
    y = x * 1
    z = Triple.apply(y)
    assert z is y and y.grad_fn.name() == "TripleBackward"
    z.backward()
    assert x.grad.item() == 3
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Triple.apply(x)


def test_mark_non_differentiable():
    class Parts(Function):
        @staticmethod
        def forward(ctx, x):
            whole = x * 2
            rest = x * 5
            ctx.mark_non_differentiable(rest)
            return whole, rest

        @staticmethod
        def backward(ctx, a, b):
            return a * 2

    x = leaf(1)
    whole, rest = Parts.apply(x)
    assert whole.requires_grad and not rest.requires_grad
    whole.backward()
    assert x.grad.item() == 2


def test_inputs_returned_as_they_are():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(1)
    y = Same.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.item() == 7
    with pytest.raises(RuntimeError, match="custom Function"):
        Same.apply(x * 1).mul_(2)


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(3)
    (g,) = taeda.autograd.grad(Once.apply(x), x, leaf(1), create_graph=True)
    assert g.item() == 6
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_contexts_are_freed():
    x = leaf(1)
    y = Square.apply(x)
    context, alive = weakref.ref(y.grad_fn), weakref.ref(x)
    y.backward()
    del x, y
    assert context() is None and alive() is None


def test_wrong_results_of_backward():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match=r"expected 2, got 1"):
        Wrong.apply(leaf(1), 2).backward()

    class Foreign(Wrong):
        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(RuntimeError, match="different from None at position 2"):
        Foreign.apply(leaf(1), 2).backward()


def test_errors_and_missing_methods():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Failing.apply(leaf(1)).backward()

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="backward or vjp"):
        Half.apply(leaf(1)).backward()


def test_hooks_on_the_node():
    x = leaf(2)
    y = Square.apply(x)
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].item()))
    y.backward()
    assert seen == [4]


def test_gradients_are_reduced_to_the_input():
    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            return x * taeda.ones(3)

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1)
    Sum.apply(x).sum().backward()
    assert x.grad.tolist() == [3]


def test_a_function_with_backward_and_vjp_fails_in_backward_only():
    class Both(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

        @staticmethod
        def vjp(ctx, grad):
            return grad

    y = Both.apply(taeda.ones(2, requires_grad=True))
    assert y.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        y.sum().backward()


def test_saved_tensors_that_are_read_once():
    class Once(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            kept = x * 2
            places.append(weakref.ref(kept))
            ctx.save_for_backward(x, kept)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            x, kept = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="can only be accessed once when"):
                ctx.saved_tensors  # noqa: B018
            del kept
            gone.append(places[-1]() is None)
            return grad * x

    places, gone = [], []
    x = leaf(3)
    y = Once.apply(x)
    y.backward(retain_graph=True)
    assert x.grad.item() == 3 and gone == [True]
    with pytest.raises(RuntimeError, match="can only be accessed once when"):
        y.backward()
    y = Once.apply(x)
    y.grad_fn.maybe_clear_saved_tensors()
    with pytest.raises(RuntimeError, match="can only be accessed once when"):
        y.backward()


def test_gradients_in_one_list():
    class Boxed(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            assert isinstance(grads, list) and len(grads) == 2
            return grads.pop() * 3 + grads.pop() * 2

    x = leaf(1)
    y, z = Boxed.apply(x)
    (y + z).backward()
    assert x.grad.item() == 5
    assert y.grad_fn.apply(leaf(1), leaf(1)).item() == 5


def test_marked_dirty_without_being_an_argument():
    class Other(Function):
        @staticmethod
        def forward(ctx, x, view):
            made = (3 * x).view(-1) if view else 3 * x
            ctx.mark_dirty(made)
            return made

        @staticmethod
        def backward(ctx, grad):
            return 3 * grad, None

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        Other.apply(leaf(1), False)
    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        Other.apply(leaf(1), True)


def test_a_written_view_that_is_saved_is_freed():
    class Written(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x

    x = leaf(1).clone()
    x = x.view_as(x)
    Written.apply(x).sum().backward()
    x = leaf(1).clone()
    x = x.view_as(x)
    y = Written.apply(x)
    gone = weakref.ref(x)
    del x, y
    assert gone() is None


def test_a_function_is_not_an_object_to_call():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Square()
    with pytest.raises(RuntimeError, match="non-static forward method is deprecated"):
        made(leaf(1))


def test_callbacks_at_the_end_of_a_pass():
    from taeda.autograd import Variable

    class Calls(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            Variable._execution_engine.queue_callback(lambda: seen.append("end"))
            seen.append(Variable._execution_engine.is_checkpoint_valid())
            with pytest.warns(DeprecationWarning, match="saved_variables is deprecat"):
                (x,) = ctx.saved_variables
            return grad * x

    seen = []
    x = leaf(2)
    Calls.apply(x).backward()
    assert seen == [True, "end"] and x.grad.item() == 2


def test_hooks_that_come_while_their_node_runs():
    from taeda.autograd import graph

    def unpack(t):
        node = taeda._C._current_autograd_node()
        node.register_hook(lambda inputs, outputs: (seen.append(outputs), inputs)[1])
        return t

    seen = []
    x = leaf(2)
    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    y.backward()
    assert seen == [(None,)] and x.grad.item() == y.item()


def test_a_written_view_is_the_only_result():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), x + 1

        @staticmethod
        def backward(ctx, grad, other):
            return 2 * grad + other

    Both.apply(leaf(1).clone())[0].sum().backward()
    base = leaf(1).clone()
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        Both.apply(base.view_as(base))
