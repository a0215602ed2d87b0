"""Optimizers step by step against PyTorch, and what they keep between steps."""

from __future__ import annotations

import math

import pytest
import taeda
import torch
from tolerance import rounding

SHAPES = [(), (3,), (2, 3)]
SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    ("AdamW", {"weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1}),
    ("ASGD", {"t0": 2, "lambd": 0.1}),
    ("Rprop", {"etas": (0.4, 1.3)}),
    ("Adafactor", {"lr": 0.1}),
]
IDS = [f"{name}-{'-'.join(options) or 'default'}" for name, options in SETTINGS]


def numbers(shape, phase: float) -> list:
    """Smooth values; no random numbers, so both libraries see the same."""
    count = math.prod(shape)
    return [math.sin(0.7 * i + phase) for i in range(count)]


def make(lib, dtype: str, shape, phase: float):
    flat = lib.tensor(numbers(shape, phase), dtype=getattr(lib, dtype))
    return flat.reshape(shape)


def parameters(lib, dtype: str) -> list:
    made = [make(lib, dtype, s, i) for i, s in enumerate(SHAPES)]
    return [p.clone().requires_grad_() for p in made]


def give_gradients(lib, params, dtype: str, step: int) -> None:
    for i, p in enumerate(params):
        p.grad = make(lib, dtype, tuple(p.shape), 1.3 * step + 2 * i)


def steps(lib, optimizer, params, dtype: str, first: int, count: int) -> list:
    for step in range(first, first + count):
        give_gradients(lib, params, dtype, step)
        optimizer.step()
    return [p.detach().tolist() for p in params]


def close(want, have, dtype: str) -> None:
    # Up to six steps of some twenty roundings, one after the other.
    tolerance = rounding(dtype, 120)
    flat_want = torch.tensor(sum((flatten(w) for w in want), [])).double()
    flat_have = torch.tensor(sum((flatten(h) for h in have), [])).double()
    torch.testing.assert_close(
        flat_have, flat_want, rtol=tolerance, atol=tolerance * 0.1
    )


def flatten(value) -> list:
    if not isinstance(value, list):
        return [value]
    return sum((flatten(v) for v in value), [])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("extra", [{}, {"foreach": False}], ids=["lists", "loop"])
@pytest.mark.parametrize(("name", "options"), SETTINGS, ids=IDS)
def test_same_weights_as_pytorch(name, options, extra, dtype) -> None:
    def run(lib):
        params = parameters(lib, dtype)
        optimizer = getattr(lib.optim, name)(params, **options, **extra)
        return steps(lib, optimizer, params, dtype, 0, 6)

    close(run(torch), run(taeda), dtype)


@pytest.mark.parametrize(("name", "options"), SETTINGS, ids=IDS)
def test_resuming_goes_on_identically(name, options) -> None:
    params = parameters(taeda, "float64")
    optimizer = getattr(taeda.optim, name)(params, **options)
    steps(taeda, optimizer, params, "float64", 0, 3)
    state, kept = optimizer.state_dict(), [p.detach().clone() for p in params]
    want = [p.clone().requires_grad_() for p in kept]
    second = getattr(taeda.optim, name)(want, **options)
    copied = {
        "param_groups": state["param_groups"],
        "state": {
            k: {n: v.clone() if hasattr(v, "clone") else v for n, v in s.items()}
            for k, s in state["state"].items()
        },
    }
    second.load_state_dict(copied)
    straight = steps(taeda, optimizer, params, "float64", 3, 3)
    resumed = steps(taeda, second, want, "float64", 3, 3)
    if name == "NAdam":  # loading rounds mu_product, as in PyTorch
        close(straight, resumed, "float32")
    else:
        assert straight == resumed


def test_muon_moves_matrices_as_pytorch() -> None:
    def run(lib):
        p = make(lib, "float32", (6, 4), 0.5).clone().requires_grad_()
        optimizer = lib.optim.Muon([p], lr=0.1)
        return steps(lib, optimizer, [p], "float32", 0, 3)

    want, have = (torch.tensor(run(lib)) for lib in (torch, taeda))
    error = rounding("bfloat16", 5)  # five steps of Newton-Schulz, in bfloat16
    torch.testing.assert_close(have, want, rtol=error, atol=error)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_follows_pytorch(search) -> None:
    def run(lib):
        x = lib.tensor([-1.2, 1.0], dtype=lib.float64, requires_grad=True)
        rate = 1.0 if search else 0.001
        optimizer = lib.optim.LBFGS([x], lr=rate, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        losses = [float(optimizer.step(closure)) for _ in range(4)]
        return [losses, x.detach().tolist()]

    want, have = run(torch), run(taeda)
    close(want, have, "float64")
    if search:
        assert have[1] == pytest.approx([1.0, 1.0], abs=1e-4)  # found, not rounded


def test_state_dict_of_pytorch_loads() -> None:
    ours, theirs = parameters(taeda, "float32"), parameters(torch, "float32")
    reference = torch.optim.Adam(theirs, lr=0.05)
    steps(torch, reference, theirs, "float32", 0, 3)
    state = reference.state_dict()
    carried = {
        "param_groups": state["param_groups"],
        "state": {
            k: {n: taeda.tensor(v.tolist()) for n, v in s.items()}
            for k, s in state["state"].items()
        },
    }
    with taeda.no_grad():
        for mine, its in zip(ours, theirs, strict=True):
            mine.copy_(taeda.tensor(its.detach().tolist()))
    optimizer = taeda.optim.Adam(ours)
    optimizer.load_state_dict(carried)
    assert optimizer.param_groups[0]["lr"] == 0.05
    close(
        steps(torch, reference, theirs, "float32", 3, 2),
        steps(taeda, optimizer, ours, "float32", 3, 2),
        "float32",
    )


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_parameters_without_gradient_stay(name) -> None:
    params = parameters(taeda, "float64")
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(taeda.optim, name)(params, lr=0.1, **options)
    before = params[1].detach().tolist()
    give_gradients(taeda, params, "float64", 0)
    params[1].grad = None
    optimizer.step()
    assert params[1].detach().tolist() == before
    assert params[1] not in optimizer.state
    give_gradients(taeda, params, "float64", 1)
    optimizer.step()
    assert params[1].detach().tolist() != before


def test_kept_lists_notice_every_change() -> None:
    params = parameters(taeda, "float64")
    optimizer = taeda.optim.Adam(params[:2], lr=0.1)
    steps(taeda, optimizer, params[:2], "float64", 0, 2)
    optimizer.add_param_group({"params": [params[2]]})
    steps(taeda, optimizer, params, "float64", 2, 1)
    assert optimizer.state[params[2]]["step"].item() == 1
    fresh = taeda.zeros(3, dtype=taeda.float64)
    optimizer.state[params[1]]["exp_avg"] = fresh
    steps(taeda, optimizer, params, "float64", 3, 1)
    assert fresh.abs().sum().item() > 0
    optimizer.state.clear()
    steps(taeda, optimizer, params, "float64", 4, 1)
    assert optimizer.state[params[0]]["step"].item() == 1
    swapped = params[0].detach().clone().requires_grad_()
    optimizer.param_groups[0]["params"][0] = swapped
    old = params[0].detach().tolist()
    steps(taeda, optimizer, [swapped, *params[1:]], "float64", 5, 1)
    assert params[0].detach().tolist() == old
    assert swapped.detach().tolist() != old


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "NAdam", "RAdam"])
def test_autograd_follows_a_differentiable_step(name) -> None:
    def after(value: float):
        start = taeda.tensor([0.3, -0.2], dtype=taeda.float64)
        scale = taeda.tensor(value, dtype=taeda.float64, requires_grad=True)
        p = (start * scale).clone()
        optimizer = getattr(taeda.optim, name)([p], lr=0.1, differentiable=True)
        for _ in range(2):
            p.grad = p.clone() ** 3 + scale
            optimizer.step()
        return p.sum(), scale

    out, scale = after(1.1)
    out.backward()
    with taeda.no_grad():
        slope = (after(1.1 + 1e-6)[0] - after(1.1 - 1e-6)[0]).item() / 2e-6
    # Step counters are float32, so the two differ by its rounding.
    assert scale.grad.item() == pytest.approx(slope, rel=1e-4)


def test_zero_grad() -> None:
    params = parameters(taeda, "float32")
    optimizer = taeda.optim.SGD(params, lr=0.1)
    give_gradients(taeda, params, "float32", 0)
    kept = params[2].grad
    optimizer.zero_grad(set_to_none=False)
    assert params[2].grad is kept
    assert kept.abs().sum().item() == 0
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


def test_closure_runs_with_gradients_and_its_loss_returns() -> None:
    x = taeda.tensor([2.0], requires_grad=True)
    optimizer = taeda.optim.SGD([x], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with taeda.no_grad():
        assert optimizer.step(closure).item() == 4.0
        assert not taeda.is_grad_enabled()
    assert x.item() == 1.0


def test_repr_is_pytorchs() -> None:
    def text(lib):
        a, b = lib.zeros(2, requires_grad=True), lib.zeros(2, requires_grad=True)
        groups = [{"params": [a]}, {"params": [b], "lr": 0.5}]
        return repr(lib.optim.SGD(groups, lr=0.1))

    assert text(taeda) == text(torch)


def test_hooks_run_in_order_and_can_be_removed() -> None:
    x = taeda.tensor([1.0], requires_grad=True)
    x.grad = taeda.ones(1)
    optimizer, calls = taeda.optim.SGD([x], lr=0.1), []
    from taeda.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    handles = [
        optimizer.register_step_pre_hook(lambda *a: calls.append("pre")),
        optimizer.register_step_post_hook(lambda *a: calls.append("post")),
        register_optimizer_step_pre_hook(lambda *a: calls.append("all pre")),
        register_optimizer_step_post_hook(lambda *a: calls.append("all post")),
    ]
    optimizer.step()
    assert calls == ["all pre", "pre", "post", "all post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 4


def test_state_dict_hooks() -> None:
    x = taeda.tensor([1.0], requires_grad=True)
    optimizer = taeda.optim.SGD([x], lr=0.1)
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    saved = optimizer.state_dict()
    assert saved["extra"] == 1

    def faster(optimizer, state):
        groups = [{**g, "lr": 9.0} for g in state["param_groups"]]
        return {**state, "param_groups": groups}

    seen = []
    optimizer.register_load_state_dict_pre_hook(faster)
    optimizer.register_load_state_dict_post_hook(seen.append)
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 9.0
    assert seen == [optimizer]


def test_a_pickled_or_copied_optimizer_steps_on() -> None:
    import copy

    params = parameters(taeda, "float64")
    optimizer = taeda.optim.Adam(params, lr=0.1)
    steps(taeda, optimizer, params, "float64", 0, 2)
    twin = copy.deepcopy(optimizer)
    theirs = twin.param_groups[0]["params"]
    want = steps(taeda, optimizer, params, "float64", 2, 2)
    assert steps(taeda, twin, theirs, "float64", 2, 2) == want


ERRORS = [
    (lambda o, p: o.SGD(p, lr=0.1), TypeError, "iterable of Tensors or dicts"),
    (lambda o, p: o.SGD([], lr=0.1), ValueError, "empty parameter list"),
    (lambda o, p: o.SGD([{"params": {p}}]), TypeError, "need an order"),
    (lambda o, p: o.SGD([3]), TypeError, "can only optimize Tensors"),
    (lambda o, p: o.SGD([p * 2]), ValueError, "non-leaf"),
    (lambda o, p: o.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda o, p: o.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
    (lambda o, p: o.SGD([p], nesterov=True), ValueError, "Nesterov"),
    (lambda o, p: o.Adam([p], betas=(1.0, 0.9)), ValueError, "index 0: 1.0"),
    (lambda o, p: o.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
    (lambda o, p: o.Adam([p], fused=True, foreach=True), RuntimeError, "cannot be"),
    (lambda o, p: o.Adadelta([p], rho=2), ValueError, "Invalid rho value: 2"),
    (lambda o, p: o.Rprop([p], etas=(2, 1)), ValueError, "Invalid eta values"),
    (lambda o, p: o.Adafactor([p], d=0), ValueError, "threshold d should be >= 1"),
    (lambda o, p: o.Muon([p]), ValueError, "2D parameters"),
    (
        lambda o, p: o.SGD([{"params": [p]}, {"params": [p]}]),
        ValueError,
        "more than one parameter group",
    ),
    (
        lambda o, p: o.SGD([p, ("name", p.detach().clone())]),
        ValueError,
        "Some param names are missing",
    ),
    (
        lambda o, p: o.LBFGS([{"params": [p]}, {"params": [p.detach().clone()]}]),
        ValueError,
        "parameter groups",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_refused_arguments(call, kind, text) -> None:
    p = taeda.zeros(3, requires_grad=True)
    with pytest.raises(kind, match=text):
        call(taeda.optim, p)


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD"])
def test_fused_steps_need_memory(kind) -> None:
    layer = taeda.nn.Linear(2, 1, device="meta")
    optimizer = getattr(taeda.optim, kind)(layer.parameters(), fused=True)
    for p in layer.parameters():
        p.grad = taeda.ones_like(p)
    with pytest.raises(RuntimeError, match="requires all the params to be floating"):
        optimizer.step()
    optimizer.zero_grad()
    layer.to_empty(device="cpu")
    for p in layer.parameters():
        p.grad = taeda.ones_like(p)
    optimizer.step()


def test_loading_other_groups_is_refused() -> None:
    a, b = taeda.zeros(1, requires_grad=True), taeda.zeros(1, requires_grad=True)
    optimizer = taeda.optim.SGD([a], lr=0.1)
    two = taeda.optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1).state_dict()
    with pytest.raises(ValueError, match="number of parameter groups"):
        optimizer.load_state_dict(two)
    larger = taeda.optim.SGD([a, b], lr=0.1).state_dict()
    with pytest.raises(ValueError, match="size of optimizer's group"):
        optimizer.load_state_dict(larger)
