"""Two tensors exchanged: objects stay, what they hold goes to the other."""

from __future__ import annotations

import weakref

import pytest
import taeda


class Marked(taeda.Tensor):
    """A tensor of a class of its own."""


def test_values_classes_and_attributes_are_exchanged():
    a = taeda.nn.Parameter(taeda.ones(2))
    b = taeda.zeros(3, dtype=taeda.int64).as_subclass(Marked)
    a.note = "a"
    first, second = id(a), id(b)
    taeda.utils.swap_tensors(a, b)
    assert (id(a), id(b)) == (first, second)
    assert type(a) is Marked and type(b) is taeda.nn.Parameter
    assert a.tolist() == [0, 0, 0] and b.tolist() == [1.0, 1.0]
    assert b.requires_grad and not a.requires_grad
    assert b.note == "a" and not hasattr(a, "note")


def test_the_graph_goes_with_the_values():
    x = taeda.ones(2, requires_grad=True)
    y, z = x * 3, taeda.zeros(1)
    taeda.utils.swap_tensors(y, z)
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.tolist() == [0.0]


def test_gradients_go_to_the_object_that_has_the_leaf():
    a, b = (taeda.full((2,), v, requires_grad=True) for v in (2.0, 5.0))
    taeda.utils.swap_tensors(a, b)
    (a * 3).sum().backward()
    assert a.tolist() == [5.0, 5.0]
    assert a.grad.tolist() == [3.0, 3.0] and b.grad is None


def test_a_leaf_of_a_graph_refuses_its_gradient():
    a, b = taeda.ones(2, requires_grad=True), taeda.ones(2, requires_grad=True)
    out = (a + 1).sum()
    taeda.utils.swap_tensors(a, b)
    with pytest.raises(RuntimeError, match="between forward and backward"):
        out.backward()


def test_what_others_hold_is_refused():
    a, b = taeda.ones(2, requires_grad=True), taeda.ones(2)
    held = weakref.ref(b)
    with pytest.raises(RuntimeError, match="t2 because it has weakref"):
        taeda.utils.swap_tensors(a, b)
    del held
    square = a * a  # saves a twice
    with pytest.raises(RuntimeError, match="Expected use_count of t1"):
        taeda.utils.swap_tensors(a, b)
    assert square.tolist() == [1.0, 1.0]


def test_modules_keep_their_parameters_when_they_are_converted():
    taeda.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer = taeda.nn.Linear(2, 3)
        kept = layer.weight
        layer.to(taeda.float64)
        assert layer.weight is kept and kept.dtype == taeda.float64
        state = {k: taeda.ones_like(v) for k, v in layer.state_dict().items()}
        layer.load_state_dict(state)
        assert layer.weight is kept and kept.sum().item() == 6.0
    finally:
        taeda.__future__.set_swap_module_params_on_conversion(False)
