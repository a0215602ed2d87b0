"""backward(), grad(), nodes and hooks."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref

import pytest
import taeda
from taeda.autograd import graph


def leaf(*values):
    return taeda.tensor([float(v) for v in values], requires_grad=True)


def test_backward_adds_to_leaves():
    x, y = leaf(1, 2), leaf(3, 4)
    (x * y).sum().backward()
    (x * y).sum().backward()
    assert x.grad.tolist() == [6, 8]
    assert y.grad.tolist() == [2, 4]


def test_backward_needs_a_scalar_or_a_gradient():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar"):
        (x * x).backward()
    (x * x).backward(taeda.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2, 40]
    with pytest.raises(RuntimeError, match="does not require grad"):
        taeda.ones(1).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * x).backward(taeda.ones(3))


def test_grad_returns_and_leaves_alone():
    x, y = leaf(2), leaf(3)
    z = x * x * y
    gx, gy = taeda.autograd.grad(z, (x, y))
    assert (gx.item(), gy.item()) == (12, 4)
    assert x.grad is None and y.grad is None


def test_unused_inputs():
    x, y = leaf(2), leaf(3)
    z = x * x
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        taeda.autograd.grad(z, y, retain_graph=True)
    assert taeda.autograd.grad(z, y, allow_unused=True, retain_graph=True) == (None,)
    (zero,) = taeda.autograd.grad(z, y, materialize_grads=True)
    assert zero.tolist() == [0]


def test_higher_derivatives():
    x = leaf(2)
    g = x * x * x * x
    for want in (32, 48, 48, 24):
        (g,) = taeda.autograd.grad(g, x, create_graph=True)
        assert g.item() == want


def test_batched_gradients_make_a_jacobian():
    x = leaf(1, 2, 3)
    y = (x * x).cumsum(0)
    eye = taeda.eye(3)
    (rows,) = taeda.autograd.grad(y, x, eye, is_grads_batched=True, retain_graph=True)
    want = [taeda.autograd.grad(y, x, e, retain_graph=True)[0].tolist() for e in eye]
    assert rows.tolist() == want
    spare = leaf(1)
    grads = taeda.autograd.grad(
        y, (x, spare), eye, is_grads_batched=True, allow_unused=True
    )
    assert grads[0].tolist() == want and grads[1] is None
    with pytest.raises(IndexError, match="first dim"):
        taeda.autograd.grad(x * 1, x, taeda.tensor(1.0), is_grads_batched=True)


def test_backward_twice():
    x = leaf(1)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_backward_into_some_inputs():
    x, y = leaf(2), leaf(3)
    (x * y).backward(inputs=[y])
    assert x.grad is None and y.grad.item() == 2
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * y).backward(inputs=[])


def test_nodes():
    x = leaf(2)
    y = x * x
    node = y.grad_fn
    assert node.name() == "MulBackward0"
    assert type(node).__name__ == "MulBackward0"
    assert repr(node).startswith("<MulBackward0 object at 0x")
    assert y.grad_fn is node
    (a, i), (b, j) = node.next_functions
    assert a is b and (i, j) == (0, 0)
    assert a.name() == "AccumulateGrad" and a.variable is x
    assert isinstance(node, graph.Node)
    node.metadata["note"] = 1
    assert y.grad_fn.metadata["note"] == 1
    assert x.grad_fn is None and x.is_leaf and not y.is_leaf


def test_tensor_hooks():
    x = leaf(2)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    handle = x.register_hook(lambda g: g * 10)
    y.backward(retain_graph=True)
    assert x.grad.item() == 40 and seen == [1]
    handle.remove()
    x.grad = None
    y.backward()
    assert x.grad.item() == 4
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        taeda.ones(1).register_hook(print)


def test_hooks_of_several_kinds():
    x = leaf(3)
    order = []
    y = x * x
    y.grad_fn.register_prehook(lambda grads: order.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append("after"))
    x.register_post_accumulate_grad_hook(lambda t: order.append(t.grad.item()))
    y.backward()
    assert order == ["before", "after", 6]


def test_node_hooks_replace_gradients():
    x = leaf(3)
    y = x * x
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 5, None))
    y.backward()
    assert x.grad.item() == 30


def test_hook_errors_keep_their_type():
    class Special(Exception):
        pass

    def fail(grad):
        raise Special("inside")

    x = leaf(3)
    y = x * x
    y.register_hook(fail)
    with pytest.raises(Special, match="inside"):
        y.backward()


def test_retain_grad():
    x = leaf(3)
    y = x * x
    y.retain_grad()
    assert y.retains_grad
    (y * 2).backward()
    assert y.grad.item() == 2
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        taeda.ones(1).retain_grad()


def test_multi_grad_hooks():
    x, y, unused = leaf(1), leaf(2), leaf(3)
    got = []
    handle = graph.register_multi_grad_hook((x, y, unused), got.append)
    (x * y).backward()
    assert [g if g is None else g.item() for g in got[0]] == [2, 1, None]
    handle.remove()
    (x * y).backward()
    assert len(got) == 1
    graph.register_multi_grad_hook((x, y), got.append, mode="any")
    (x * y).backward()
    assert len(got) == 2 and got[1].item() in (1, 2)


def test_gradient_edges():
    x = leaf(3)
    y = x * x
    edge = graph.get_gradient_edge(x)
    (g,) = taeda.autograd.grad(y, edge)
    assert g.item() == 6
    middle = x * x
    top = graph.get_gradient_edge(middle * 2)
    taeda.autograd.backward(top, taeda.ones(1))
    assert x.grad.item() == 12
    taeda.autograd.backward(x * 2, inputs=edge)
    assert x.grad.item() == 14
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        taeda.autograd.backward(graph.get_gradient_edge(leaf(1, 2) * 2))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        taeda.autograd.backward(graph.get_gradient_edge(x * 2), taeda.ones(3))


def test_edges_hold_the_graph_of_a_function():
    class Same(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(3)
    edge = graph.get_gradient_edge(Same.apply(x * 1))
    taeda.autograd.backward(edge, retain_graph=True)
    taeda.autograd.backward(edge)
    assert x.grad.item() == 4


def test_hooks_are_given_the_inputs_themselves():
    x, fixed = leaf(3), taeda.tensor(2.0)
    packed = []

    def pack(t):
        packed.append(t)
        return t

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * fixed + x * x
    assert {id(t) for t in packed} == {id(x), id(fixed)}
    y.backward()
    assert x.grad.item() == 8


def test_graphs_of_gradients_in_leaves_are_warned_of_once():
    program = """
import warnings, taeda
x = taeda.ones(1, requires_grad=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(2):
        (x * x).backward(create_graph=True)
        taeda.autograd.grad(x * x, x, create_graph=True)
        float(x), x.item(), int(x)
assert [str(w.message).split(" ")[0] for w in seen] == ["Using", "Converting"], seen
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_saved_tensor_hooks():
    x = leaf(3)
    packed = []

    def pack(t):
        packed.append(t)
        return len(packed) - 1

    with graph.saved_tensors_hooks(pack, lambda i: packed[i] * 2):
        y = x * x
    y.backward()
    assert len(packed) == 2 and x.grad.item() == 12
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.saved_tensors_hooks(pack, pack):
                pass


def test_saved_tensor_hooks_keep_double_backward():
    x = leaf(3)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x * x
        (g,) = taeda.autograd.grad(y, x, create_graph=True)
    (gg,) = taeda.autograd.grad(g, x)
    assert gg.item() == 18


def test_inplace_errors():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.mul_(2)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
        z.sum().backward()
    text = str(info.value)
    assert "saved for MulBackward0" in text and "[2]" in text
    assert "is at version 1; expected version 0" in text


def test_inplace_on_views():
    x = leaf(1, 2, 3)
    y = x * 1
    y.view(3, 1).mul_(2)
    assert y.grad_fn.name() == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("stretched", ["expand", "unfold"])
def test_a_write_to_what_a_view_shows_several_times(stretched):
    weights = taeda.arange(6.0).view(2, 3)

    def view(t):
        if stretched == "expand":
            return t[:3].expand(2, 3)
        return t.unfold(0, 3, 1)

    def after(x):
        y = x * 1
        seen = view(y)
        y[:2].mul_(2)
        return (seen * weights).sum()

    def before(x):
        return (view(x * taeda.tensor([2.0, 2, 1, 1])) * weights).sum()

    x = leaf(1, 2, 3, 4)
    (found,) = taeda.autograd.grad(after(x), x)
    (want,) = taeda.autograd.grad(before(x), x)
    assert found.tolist() == want.tolist()


def test_requires_grad_rules():
    with pytest.raises(RuntimeError, match="floating point and complex"):
        taeda.ones(1, dtype=taeda.int64).requires_grad_()
    y = leaf(1) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        y.requires_grad = False
    assert not y.detach().requires_grad
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_graphs_are_freed():
    x = leaf(1)
    y = x * x
    alive = weakref.ref(y)
    z = y * 2
    del y
    z.backward()
    del z
    gc.collect()
    assert alive() is None


def test_leaves_are_freed():
    x = leaf(1)
    (x * x).backward()
    alive = weakref.ref(x)
    del x
    assert alive() is None


@pytest.mark.parametrize("kind", ["hook", "post_accumulate_grad_hook"])
def test_hooks_of_a_leaf_may_refer_to_it(kind):
    x = leaf(1)
    getattr(x, f"register_{kind}")(lambda g, x=x: None)
    gc.collect()  # which must not take what is in use
    (x * 2).backward()
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_nodes_take_one_gradient_for_each_result():
    node = (leaf(3) * 2).grad_fn
    assert node(taeda.ones(1))[0].item() == 2
    for wrong in ((), (taeda.ones(1), taeda.ones(1))):
        with pytest.raises(TypeError, match=f"expected 1 arguments, got {len(wrong)}"):
            node(*wrong)


def test_a_long_chain():
    x = leaf(1)
    y = x
    for _ in range(100_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 100_001


def test_backward_from_several_threads():
    x = leaf(2)
    y = x * x

    def work():
        for _ in range(50):
            y.backward(retain_graph=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.item() == 4 * 200


def test_queue_callback_and_reentrance():
    x = leaf(2)
    y = x * x
    calls = []

    def hook(grad):
        inner = leaf(3)
        with taeda.enable_grad():
            (inner * inner).backward()
        taeda._C._queue_callback(lambda: calls.append(inner.grad.item()))

    y.register_hook(hook)
    y.backward()
    assert calls == [6]


def test_ctrl_c_ends_a_pass():
    x = leaf(1)
    y = x

    for _ in range(2000):
        y = y + x
        y.register_hook(lambda g: time.sleep(0.005))
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    # Started in the background, a shell's children would ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        begin = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            y.backward()
        assert time.perf_counter() - begin < 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_anomaly_mode_names_the_forward_line():
    x = leaf(1)
    with taeda.autograd.set_detect_anomaly(True):
        y = x * 1
        z = y * y  # this line
        y.add_(1)
        with pytest.warns(UserWarning, match="this line"):
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                z.backward()


def test_anomaly_mode_finds_nan():
    class Bad(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    x = leaf(1)
    with pytest.warns(UserWarning), taeda.autograd.detect_anomaly():
        y = Bad.apply(x)
        with pytest.raises(RuntimeError, match="'BadBackward' returned nan values"):
            y.backward()


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("x**2", "PowBackward0"),
        ("2**x", "PowBackward2"),
        ("1 - x", "RsubBackward1"),
        ("x.max(1)[0]", "MaxBackward0"),
        ("x.transpose(0, 1)", "TransposeBackward0"),
        ("x.clamp(0, 1)", "ClampBackward1"),
        ("x @ x.t()", "MmBackward0"),
        ("x[0] @ x[0]", "DotBackward0"),
        ("taeda.nn.Linear(3, 2)(x)", "AddmmBackward0"),
        ("taeda.nn.Linear(3, 2)(x[None])", "ViewBackward0"),
        ("taeda.nn.functional.nll_loss(x, taeda.tensor([0, 2]))", "NllLossBackward0"),
        ("taeda.where(x > 0, x, x)", "WhereBackward0"),
    ],
)
def test_nodes_have_pytorchs_names(expression, name):
    x = taeda.rand(2, 3, requires_grad=True)
    assert type(eval(expression, {"x": x, "taeda": taeda}).grad_fn).__name__ == name


def test_batches_of_gradients_of_a_view_that_was_written() -> None:
    leaf = taeda.randn(4, 5, requires_grad=True)
    base = leaf * leaf
    view = base[0]
    view.cos_()
    grads = taeda.randn(3, 5)
    ask = {"retain_graph": True}
    (found,) = taeda.autograd.grad(view, leaf, grads, is_grads_batched=True, **ask)
    each = [taeda.autograd.grad(view, leaf, g, **ask)[0] for g in grads]
    assert taeda.allclose(found, taeda.stack(each))


def test_the_grad_of_what_is_no_leaf_is_warned_of():
    x = leaf(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None and x.detach().grad is None
        y = x * 2
        y.retain_grad()
        assert y.grad is None
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert (x * 2).grad is None


def test_what_retains_its_gradient_outlives_a_batch_of_gradients():
    x = leaf(1, 2)
    y = x * 3
    y.retain_grad()
    z = y * y
    taeda.autograd.grad(z, x, taeda.eye(2), retain_graph=True, is_grads_batched=True)
    z.sum().backward()
    assert y.grad.tolist() == [6, 12]


@pytest.mark.parametrize("first", [0, 1])
def test_gradients_of_which_one_has_a_batch(first) -> None:
    """The other one, which comes first, is no place for their sum."""
    x = taeda.arange(3.0, requires_grad=True)
    rows = taeda.arange(6.0).reshape(2, 3)

    def pull(row):
        grads = [taeda.ones(3), row]
        outs = [x.sin().exp(), x.cos().exp()]
        return taeda.autograd.grad(outs, x, [grads[first], grads[1 - first]])[0]

    found = taeda.vmap(pull)(rows)
    for row, line in zip(rows, found, strict=True):
        assert taeda.allclose(line, pull(row))
