"""What nodes keep, as attributes of `grad_fn`; and views that may not be written."""

from __future__ import annotations

import pytest
import taeda
import torch

BOTH = (taeda, torch)
# Of a node that another made of x, y (which require gradients) and n: what PyTorch
# keeps under these names, too.
CALLS = {
    "x.exp()": "result",
    "x * y": "self other",
    "x.pow(3)": "self exponent",
    "x.softmax(0)": "dim",
    "x.sum(1)": "dim keepdim self_sym_sizes",
    "m.split(x, (1, 1), 1)[0]": "dim self_sym_sizes split_sizes",
    "x.transpose(0, 1)": "dim0 dim1",
    "x.index_select(0, n)": "index dim",
    "m.where(n > 0, x[:, 0], y[:, 0])": "condition",
    "m.cat([x, y])": "dim",
    "x.clamp(0.0, 1.0)": "self min max",
}


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _kept(m, call: str, names: str) -> list:
    x = m.tensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    y = m.tensor([[0.5, 1.0], [2.0, 2.0]], requires_grad=True)
    node = eval(call, {"m": m, "x": x, "y": y, "n": m.tensor([1, 0])}).grad_fn
    return [_plain(getattr(node, f"_saved_{name}")) for name in names.split()]


@pytest.mark.parametrize("call", CALLS)
def test_nodes_show_what_they_keep(call):
    ours, theirs = (_kept(m, call, CALLS[call]) for m in BOTH)
    assert ours == theirs


def test_what_a_node_does_not_keep_is_no_attribute():
    node = taeda.ones(2, requires_grad=True).exp().grad_fn
    assert not hasattr(node, "_saved_self") and not hasattr(node, "variable")
    with pytest.raises(AttributeError, match="'ExpBackward0' object has no attribute"):
        _ = node._saved_nothing
    assert {"_saved_result", "_raw_saved_result", "next_functions"} <= {*dir(node)}


def test_a_freed_tensor_is_an_error():
    y = taeda.ones(2, requires_grad=True).exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        _ = y.grad_fn._saved_result


def test_a_leaf_is_the_variable_of_its_accumulator():
    x = taeda.ones(2, requires_grad=True)
    assert x.exp().grad_fn.next_functions[0][0].variable is x


def test_hooks_on_one_saved_tensor():
    x = taeda.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda v: 10 * x)
    assert y.grad_fn._saved_self.tolist() == [20.0, 30.0]
    y.sum().backward()
    assert x.grad.tolist() == [22.0, 33.0]


@pytest.mark.parametrize("view", ["a.view(2)", "a[0:1]", "a.unbind()[0]"])
def test_a_view_of_one_of_several_views_is_not_written(view):
    for m in BOTH:
        a = (m.ones(4, requires_grad=True) * 1).split(2)[0]
        with pytest.raises(RuntimeError, match="function that returns multiple views"):
            eval(view).mul_(2)
        assert a.detach().mul_(2).tolist() == [2.0, 2.0]


LAYERS = {
    "LSTM": {},
    "LSTM projected": {"proj_size": 2},
    "LSTM both ways": {"bidirectional": True, "num_layers": 2},
    "GRU": {},
    "GRU without bias": {"bias": False},
    "RNN": {},
    "RNN relu": {"nonlinearity": "relu"},
}


def _penalty(m, kind: str, lengths) -> list:
    """Gradients of the squared gradients of a recurrent layer's results."""
    torch.manual_seed(3)
    data = torch.randn(5, 2, 3, dtype=torch.float64).tolist()
    made = getattr(torch.nn, kind.split()[0])(3, 4, **LAYERS[kind]).double()
    layer = getattr(m.nn, kind.split()[0])(3, 4, **LAYERS[kind]).double()
    for own, other in zip(layer.parameters(), made.parameters(), strict=True):
        own.data.copy_(m.tensor(other.tolist(), dtype=m.float64))
    x = m.tensor(data, dtype=m.float64, requires_grad=True)
    packed = x
    if lengths:
        packed = m.nn.utils.rnn.pack_padded_sequence(x, lengths)
    out, states = layer(packed)
    if lengths:
        out = out.data
    states = states if isinstance(states, tuple) else (states,)
    total = out.pow(2).sum() + sum(s.sin().sum() for s in states)
    inputs = [x, *layer.parameters()]
    first = m.autograd.grad(total, inputs, create_graph=True)
    second = m.autograd.grad(sum(g.pow(2).sum() for g in first), inputs)
    return [t.detach().tolist() for t in (*first, *second)]


@pytest.mark.parametrize("lengths", [None, [5, 3]])
@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_of_recurrent_layers_have_gradients(kind, lengths):
    ours, theirs = (_penalty(m, kind, lengths) for m in BOTH)
    for own, other in zip(ours, theirs, strict=True):
        wanted = torch.tensor(other, dtype=torch.float64)
        assert torch.allclose(torch.tensor(own, dtype=torch.float64), wanted)


def test_norms_of_lists_have_gradients():
    grads = []
    for m in BOTH:
        xs = [m.tensor([3.0, 4.0], requires_grad=True), m.ones(2, requires_grad=True)]
        sum(m._foreach_norm(xs, 1)).backward()
        sum(m._foreach_norm(xs)).backward()
        grads.append([x.grad.tolist() for x in xs])
    assert grads[0] == grads[1]


def test_hooks_of_parameters_run_once_with_a_graph_of_gradients():
    layer = taeda.nn.GRU(2, 3)
    calls = []
    layer.weight_hh_l0.register_hook(calls.append)
    layer(taeda.ones(4, 1, 2))[0].sum().backward(create_graph=True)
    assert len(calls) == 1


PRODUCTS = {
    "F.linear(x, w)": ((3, 4), (2, 4)),
    "F.linear(x, w, m.ones(2))": ((5, 3, 4), (2, 4)),
    "F.linear(x, w[0])": ((3, 4), (2, 4)),
    "x @ w": ((3, 4), (4, 2)),
    "x @ w[0]": ((3, 2), (4, 2)),
    "x[0] @ w": ((3, 4), (4, 2)),
    "m.mv(x, w[:, 0])": ((3, 4), (4, 2)),
    "m.matmul(x, w)": ((5, 3, 4), (4, 2)),
}


@pytest.mark.parametrize("frozen", ["x", "w"])
@pytest.mark.parametrize("call", PRODUCTS)
def test_what_multiplied_a_frozen_operand_may_be_written_to(call, frozen):
    """Its own gradient is the other's value, which nothing keeps."""

    def gradient(m):
        values = dict(zip("xw", map(m.ones, PRODUCTS[call]), strict=True))
        (asked,) = {"x", "w"} - {frozen}
        leaf = values[asked].requires_grad_()
        values[asked] = leaf * 2
        out = eval(call, {"m": m, "F": m.nn.functional, **values})
        with m.no_grad():
            values[asked].add_(1)
        return m.autograd.grad(out.sum(), leaf)[0].tolist()

    assert gradient(taeda) == gradient(torch)
