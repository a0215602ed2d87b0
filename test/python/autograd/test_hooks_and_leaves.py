"""What hooks are shown, what leaves keep, and what ends with the graph."""

from __future__ import annotations

import gc
import weakref

import pytest
import taeda
from taeda.autograd import Function
from taeda.utils.checkpoint import checkpoint


class Wrapped(taeda.Tensor):
    """Holds another tensor, which answers for it."""

    @staticmethod
    def __new__(cls, inner):
        made = taeda.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )
        made.inner = inner.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def inner(x):
            return x.inner if isinstance(x, cls) else x

        result = func(*map(inner, args), **(kwargs or {}))
        return cls(result) if isinstance(result, taeda.Tensor) else result


def test_data_of_a_class_counts_its_own_changes():
    x = Wrapped(taeda.ones(2)).requires_grad_()
    y = x * x
    x.data.add_(1)
    assert x._version == 0 and x.data._version == 0
    y.sum().backward()
    x.detach().add_(1)
    assert x._version == 1
    assert taeda.allclose(x.detach(), x.detach()) is True
    assert taeda.equal(x.detach(), x.detach() + 1) is False


def test_hooks_see_gradients_that_did_not_come():
    x = taeda.arange(3.0, requires_grad=True)
    first, second, _ = x.unbind()
    seen: list = []
    first.register_hook(seen.append)
    second.backward()
    assert seen == [None]

    class OneSided(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    other = taeda.ones(3, requires_grad=True)
    other.register_hook(lambda grad: seen.append(grad))
    OneSided.apply(x, other).sum().backward()
    assert seen == [None, None] and other.grad is None


def test_a_hook_that_is_removed_by_another_runs_once_more():
    x = taeda.ones(2, requires_grad=True)
    y, calls = x * 2, []
    y.grad_fn.register_prehook(lambda grads: second.remove())
    second = y.grad_fn.register_prehook(lambda grads: calls.append(len(grads)))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert calls == [1]


def test_hooks_behind_a_leaf_see_its_grad():
    """No copy is made for who watches."""
    x = taeda.rand(3, requires_grad=True)
    leaf = x.view_as(x).grad_fn.next_functions[0][0]

    def add_half(tensor) -> None:
        tensor.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(add_half)
    seen = []
    leaf.register_hook(lambda inputs, outputs: seen.append(outputs[0].clone()))
    (x * 2).sum().backward()
    assert seen[0].tolist() == x.grad.tolist() == [2.5] * 3


@pytest.mark.parametrize("expanded", [False, True])
def test_parts_of_a_sparse_gradient_are_kept(expanded):
    pointers = []

    class Give(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            values = taeda.ones(1, 3).expand(2, 3)
            values = values if expanded else values.contiguous()
            found = taeda.sparse_coo_tensor([[1, 4]], values, (5, 3))
            pointers.append(found._values().data_ptr())
            return found, found

    a, b = (taeda.zeros(5, 3, requires_grad=True) for _ in range(2))
    Give.apply(a, b).sum().backward()
    got = [t.grad._values().data_ptr() for t in (a, b)]
    assert got[0] != got[1] and (pointers[0] in got) is not expanded


def test_sparse_gradients_are_added_in_the_order_of_their_calls():
    class Give(Function):
        @staticmethod
        def forward(ctx, x, place):
            ctx.place = place
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            place = ctx.place
            return taeda.sparse_coo_tensor([[place, place]], [1.0, 1.0], (4,)), None

    x = taeda.zeros(4, requires_grad=True)
    (Give.apply(x, 3) + Give.apply(x, 1)).sum().backward()
    assert x.grad._indices().tolist() == [[3, 3, 1, 1]]


def test_a_leaf_of_another_shape_has_another_accumulator():
    x = taeda.nn.Parameter(taeda.ones(4))
    kept = (x * 2).sum()
    with taeda.no_grad():
        x.set_(x[1:])
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    del kept


def test_what_was_saved_and_then_detached():
    x = taeda.tensor(1.0, requires_grad=True)
    y = x.clone()
    z = y.sin()
    y.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached"):
        z.backward()
    y = x.clone()
    z = y.exp()  # keeps its result
    y.detach_()
    z.backward()
    x.requires_grad_(False)  # a leaf may stop to ask


def test_gradients_of_results_without_one_stay_absent():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            fixed = x.clone()
            ctx.mark_non_differentiable(fixed)
            ctx._materialize_non_diff_grads = False
            return x.clone(), fixed, x.clone()

        @staticmethod
        def backward(ctx, first, fixed, last):
            seen.append((fixed, last.item()))
            return first

    Two.apply(taeda.tensor(1.0, requires_grad=True))[0].backward()
    assert seen == [(None, 0.0)]


def test_views_of_functions_that_nobody_recorded():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad

    view, other = View.apply(taeda.rand(1)), taeda.rand(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        view += other
    base = taeda.rand(2, requires_grad=True)
    with taeda.no_grad():
        view = View.apply(base)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.zero_()
    again = view[:1]
    with pytest.raises(RuntimeError, match="a view of a view which was created in no"):
        again.zero_()


def test_edges_are_held_to_their_outputs_form():
    x = taeda.rand(2, requires_grad=True)
    edge = taeda.autograd.graph.get_gradient_edge(x * 2)
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        taeda.autograd.grad(edge, x, taeda.ones(2, dtype=taeda.complex64))
    found = taeda.autograd.grad(edge, x, taeda.ones(2, dtype=taeda.float64))
    assert found[0].dtype == taeda.float32


def test_what_is_kept_with_a_node_lives_as_long():
    class Kept:
        pass

    t = taeda.rand(2, requires_grad=True).exp()
    t.grad_fn.metadata["key"] = kept = Kept()
    seen = weakref.ref(kept)
    del kept
    assert t.grad_fn.metadata["key"] is seen()
    del t
    assert seen() is None


def test_recomputed_graphs_do_not_hold_themselves():
    """What a hook of saved tensors gave got the history of the node that held it."""

    def gradient(f):
        def found(x):
            with taeda.enable_grad():
                return taeda.autograd.grad(f(x), x, create_graph=True)[0]

        return found

    def kept_less(f):
        return lambda x: checkpoint(f, x, use_reentrant=False)

    x = taeda.rand((), requires_grad=True)
    result = gradient(kept_less(gradient(lambda x: x.sin().exp().sin())))(x)
    seen = weakref.ref(x)
    gc.disable()
    del x, result
    gc.enable()
    assert seen() is None


def test_anomaly_mode_tells_what_induced_a_node():
    class Halved(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return Halved.apply(grad)

    def fail(inside):
        x = taeda.ones(2, requires_grad=True)
        seed = taeda.ones(2, requires_grad=True)
        with taeda.autograd.set_detect_anomaly(inside):
            (found,) = taeda.autograd.grad(Twice.apply(x), x, seed, create_graph=True)
        with taeda.autograd.set_detect_anomaly(True):
            with pytest.raises(RuntimeError, match="returned nan values"):
                found.sum().backward()

    with pytest.warns(UserWarning) as told:
        fail(True)
    first, second = (str(w.message) for w in told)
    assert first.startswith("Error detected in HalvedBackward. Traceback of forward")
    assert "Halved.apply(grad)" in first
    assert "induced by TwiceBackward" in second and "Twice.apply(x)" in second
    with pytest.warns(UserWarning, match="No forward pass information") as told:
        fail(False)
    assert len(told) == 1


def test_version_counters_stay_as_they_were():
    x = taeda.ones(2, requires_grad=True).clone()
    y = x.square()
    with taeda.autograd._unsafe_preserve_version_counter(x):
        x.mul_(1)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Cannot set a version counter to -1"):
        taeda._C._set_version(x, -1)


@pytest.mark.parametrize("of_tensor", [True, False])
@pytest.mark.parametrize("held", ["tensor", "node"])
def test_hooks_that_hold_what_they_are_on_are_collected(of_tensor, held):
    """When the graph is gone, and no sooner."""
    calls = []

    class Kept:
        pass

    def made():
        y = taeda.tensor(1.0, requires_grad=True).clone()
        own, kept = y if held == "tensor" else y.grad_fn, Kept()
        (y if of_tensor else y.grad_fn).register_hook(
            lambda *grads: calls.append((own, kept)[:0])
        )
        return y.clone(), weakref.ref(kept)

    result, seen = made()
    gc.collect()
    result.backward(retain_graph=True)
    assert calls == [()] and seen() is not None
    del result
    gc.collect()
    assert seen() is None
