"""GradScaler and its operators, against PyTorch step by step."""

from __future__ import annotations

import math
import pickle

import pytest
import taeda
import torch

# Gradients of the two parameters at each step; inf and nan overflow.
STEPS = [
    ([1.0, 2.0], [0.5]),
    ([math.inf, 2.0], [0.5]),
    ([1.0, -2.0], [0.25]),
    ([3.0, 4.0], [math.nan]),
    ([1.0, 2.0], [0.5]),
    ([1.0, 2.0], [0.5]),
    ([1.0, 2.0], [0.5]),
]
OPTIMIZERS = {
    "sgd": lambda m, ps: m.optim.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda m, ps: m.optim.Adam(ps, lr=0.1),
    "fused": lambda m, ps: m.optim.Adam(ps, lr=0.1, fused=True),
}


def trained(m, make, unscale: bool) -> list:
    params = [
        m.nn.Parameter(m.tensor([1.0, 2.0])),
        m.nn.Parameter(m.tensor([3.0])),
    ]
    optimizer = make(m, params)
    scaler = m.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    seen = []
    for grads in STEPS:
        optimizer.zero_grad()
        loss = sum((p * m.tensor(g)).sum() for p, g in zip(params, grads, strict=True))
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
            seen.append([p.grad.tolist() for p in params])
        scaler.step(optimizer)
        scaler.update()
        seen += [p.tolist() for p in params]
        seen += [scaler.get_scale(), scaler.state_dict()]
    return seen


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_pytorchs(name, unscale):
    ours = trained(taeda, OPTIMIZERS[name], unscale)
    theirs = trained(torch, OPTIMIZERS[name], unscale)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a) == str(b) or a == pytest.approx(b, rel=1e-6)


def test_outputs_are_scaled_as_pytorch_scales_them():
    def run(m):
        scaler = m.amp.GradScaler("cpu", init_scale=4.0)
        one = m.tensor(1.0)
        nested = scaler.scale([one, (one * 2, m.ones(2).half())])
        assert isinstance(nested, list) and isinstance(nested[1], tuple)
        halved = scaler.scale(one.half())
        flat = [nested[0], *nested[1], halved, *scaler.scale(t for t in [one])]
        return [(str(t.dtype)[-8:], t.tolist()) for t in flat]

    assert run(taeda) == run(torch)
    with pytest.raises(ValueError, match="Tensor or an iterable of Tensors"):
        taeda.amp.GradScaler("cpu").scale(1)


def with_gradient(value=1.0):
    param = taeda.nn.Parameter(taeda.ones(2))
    param.grad = taeda.full((2,), value)
    scaler = taeda.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(taeda.ones(1))
    return param, taeda.optim.SGD([param], lr=1.0), scaler


def test_the_order_of_calls_is_checked():
    _, optimizer, scaler = with_gradient()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: 1)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior"):
        scaler.update()


def test_calls_before_scale_are_errors():
    _, optimizer, _ = with_gradient()
    scaler = taeda.amp.GradScaler("cpu")
    for name in ("unscale_", "step"):
        with pytest.raises(AssertionError, match=f"Attempted {name} but _scale"):
            getattr(scaler, name)(optimizer)
    with pytest.raises(AssertionError, match="Attempted update but _scale"):
        scaler.update()


def test_what_cannot_be_unscaled():
    param, optimizer, scaler = with_gradient()
    param.grad = None
    with pytest.raises(AssertionError, match="No inf checks were recorded for this"):
        scaler.step(optimizer)
    half = taeda.nn.Parameter(taeda.ones(2).half())
    half.grad = taeda.ones(2).half()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(taeda.optim.SGD([half], lr=1.0))


def test_factors_are_checked():
    with pytest.raises(AssertionError, match="growth factor must be > 1.0"):
        taeda.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1.0"):
        taeda.amp.GradScaler("cpu", backoff_factor=1.0)
    _, _, scaler = with_gradient()
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(taeda.tensor(5.0))
    assert scaler.get_scale() == 5.0
    with pytest.raises(AssertionError, match="new_scale should be"):
        scaler.update(taeda.ones(2))


def test_state_travels():
    _, optimizer, scaler = with_gradient()
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    scaler.step(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.update()
    state = scaler.state_dict()
    assert state["_growth_tracker"] == 1
    for other in (pickle.loads(pickle.dumps(scaler)), taeda.amp.GradScaler("cpu")):
        other.load_state_dict({**state, "scale": 2.0})
        assert other.get_scale() == 2.0
        assert other.scale(taeda.ones(())).item() == 2.0
        assert other.state_dict()["_growth_tracker"] == 1


def test_disabled_it_passes_all_through():
    param, optimizer, _ = with_gradient()
    scaler = taeda.amp.GradScaler("cpu", enabled=False)
    x = taeda.ones(1)
    assert scaler.scale(x) is x and scaler.get_scale() == 1.0
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == [0.0, 0.0] and scaler.state_dict() == {}


# Operators ---------------------------------------------------------------------

GRADIENTS = [
    "m.full((3, 4), 4.0).t()",
    "m.tensor([1.0, float('inf')])",
    "m.tensor([float('nan'), 1.0]).double()",
    "m.full((3,), 6e4).half()",
    "m.full((3,), 3.0).bfloat16()",
    "m.empty(0)",
    "m.tensor(2.0)",
]


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_unscaling(gradient):
    def run(m):
        grads = [eval(gradient, {"m": m}), m.ones(2)]
        found = m.zeros(1)
        m._amp_foreach_non_finite_check_and_unscale_(grads, found, m.tensor(0.3))
        return str([g.tolist() for g in grads]), found.tolist()

    assert run(taeda) == run(torch)


@pytest.mark.parametrize("overflow", [0.0, 1.0])
@pytest.mark.parametrize(("scale", "steps"), [(8.0, 0), (8.0, 1), (3e38, 1)])
def test_the_next_scale(scale, steps, overflow):
    def run(m):
        factor, tracker = m.tensor([scale]), m.tensor([steps], dtype=m.int32)
        args = (factor, tracker, m.tensor([overflow]), 2.0, 0.5, 2)
        assert m._amp_update_scale_(*args) is factor
        return factor.tolist(), tracker.tolist()

    assert run(taeda) == run(torch)


MISTAKES = {
    "found_inf must be a 1-element tensor": (
        lambda m: m._amp_foreach_non_finite_check_and_unscale_(
            [m.ones(2)], m.zeros(2), m.ones(1)
        )
    ),
    "inv_scale must be a float tensor": (
        lambda m: m._amp_foreach_non_finite_check_and_unscale_(
            [m.ones(2)], m.zeros(1), m.ones(1).double()
        )
    ),
    "not implemented for 'Int'": (
        lambda m: m._amp_foreach_non_finite_check_and_unscale_(
            [m.ones(2).int()], m.zeros(1), m.ones(1)
        )
    ),
    "growth_tracker must be an int tensor": (
        lambda m: m._amp_update_scale_(m.ones(1), m.zeros(1), m.zeros(1), 2.0, 0.5, 2)
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_wrong_arguments(text):
    for m in (taeda, torch):
        with pytest.raises(RuntimeError, match=text):
            MISTAKES[text](m)


def test_a_step_that_asks_for_the_scaler_gets_it():
    class Asks(taeda.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            self.given = grad_scaler
            self.factors = hasattr(self, "grad_scale"), hasattr(self, "found_inf")

    weight = taeda.ones(2, requires_grad=True)
    optimizer, scaler = Asks([weight]), taeda.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.given is scaler
    assert optimizer.factors == (False, False)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("last", [64.0, float("inf"), float("nan")])
def test_sparse_gradients_are_unscaled(dtype, last):
    results = []
    for m in (taeda, torch):
        weight = m.zeros(2, 3, dtype=getattr(m, dtype), requires_grad=True)
        places = m.tensor([[0, 1, 1], [2, 0, 2]])
        numbers = m.tensor([16.0, 32.0, last], dtype=weight.dtype)
        weight.grad = m.sparse_coo_tensor(places, numbers, (2, 3))
        found = m.amp.GradScaler("cpu")._unscale_grads_(
            m.optim.SGD([weight]), m.full((1,), 0.25), m.zeros(1), True
        )
        results.append((found[weight.device].item(), weight.grad.to_dense().tolist()))
    assert repr(results[0]) == repr(results[1])


def test_what_overflows_in_sum_counts():
    weight = taeda.zeros(2, dtype=taeda.float16, requires_grad=True)
    numbers = taeda.tensor([64000.0, 64000.0], dtype=taeda.float16)
    weight.grad = taeda.sparse_coo_tensor(taeda.tensor([[0, 0]]), numbers, (2,))
    found = taeda.amp.GradScaler("cpu")._unscale_grads_(
        taeda.optim.SGD([weight]), taeda.full((1,), 0.25), taeda.zeros(1), True
    )
    assert found[weight.device].item() == 1
