"""Fused optimizers, norms of lists and GradScaler on the device, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import taeda

Tensor = taeda.Tensor


def parameters(device: str, dtype: taeda.dtype) -> list[Tensor]:
    taeda.manual_seed(5)
    # More tensors than a table has; one of many chunks, one that is not aligned.
    sizes = [(9000,), (3, 5), (0,), (1,), *[(2, 3)] * 50]
    made = [taeda.randn(*size).to(dtype) for size in sizes]
    made.append(taeda.randn(17).to(dtype)[1:])
    made.append(taeda.randn(4, 6).to(dtype).t())
    return [t.to(device).detach().requires_grad_() for t in made]


def stepped(device: str, make: Callable, dtype: taeda.dtype) -> list[Tensor]:
    params = parameters(device, dtype)
    optimizer = make(params)
    for step in range(2):
        for i, p in enumerate(params):
            slope = taeda.linspace(-1, 1, p.numel(), dtype=taeda.float64)
            slope = (slope * (i + 1) + step).reshape(p.shape).to(p.dtype)
            p.grad = slope.to(device)
        optimizer.step()
    return [p.detach() for p in params]


RULES = {
    "sgd": lambda p, **k: taeda.optim.SGD(p, 0.1, weight_decay=0.1, **k),
    "momentum": lambda p, **k: taeda.optim.SGD(
        p, 0.1, momentum=0.9, dampening=0.1, **k
    ),
    "nesterov": lambda p, **k: taeda.optim.SGD(
        p, 0.1, momentum=0.9, nesterov=True, maximize=True, **k
    ),
    "adam": lambda p, **k: taeda.optim.Adam(p, 0.1, weight_decay=0.1, **k),
    "adamw": lambda p, **k: taeda.optim.AdamW(p, 0.1, amsgrad=True, **k),
    "adagrad": lambda p, **k: taeda.optim.Adagrad(p, 0.1, lr_decay=0.1, **k),
    "rmsprop": lambda p, **k: taeda.optim.RMSprop(p, 0.1, momentum=0.5, centered=True),
}


@pytest.mark.parametrize("how", [{"fused": True}, {"foreach": True}], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_steps(rule: str, how: dict) -> None:
    def make(params: list) -> taeda.optim.Optimizer:
        return RULES[rule](params, **how)

    for dtype, bound in ((taeda.float32, 1e-5), (taeda.bfloat16, 2e-2)):
        if dtype is taeda.bfloat16 and rule not in ("sgd", "adamw"):
            continue
        got, want = stepped("cuda", make, dtype), stepped("cpu", make, dtype)
        for a, b in zip(got, want, strict=True):
            assert taeda.allclose(a.cpu(), b, rtol=bound, atol=bound)


@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, 0.0, float("inf")])
def test_norms_of_lists(order: float) -> None:
    here = [p.detach() for p in parameters("cpu", taeda.float32)]
    here.append(taeda.tensor([1.0, float("nan")]))
    here.append(taeda.randn(300).half())
    got = taeda._foreach_norm([t.cuda() for t in here], order)
    want = taeda._foreach_norm(here, order)
    for a, b in zip(got, want, strict=True):
        assert a.is_cuda and a.dtype is b.dtype
        assert taeda.allclose(a.cpu(), b, rtol=1e-3, equal_nan=True)


def test_clipping() -> None:
    def clipped(device: str) -> list[Tensor]:
        params = parameters(device, taeda.float32)
        for p in params:
            p.grad = p.detach() * 3
        total = taeda.nn.utils.clip_grad_norm_(params, 1.5)
        return [total, *(p.grad for p in params)]

    for a, b in zip(clipped("cuda"), clipped("cpu"), strict=True):
        assert taeda.allclose(a.cpu(), b, rtol=1e-5)


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_a_gradient_scaler(bad: float | None) -> None:
    def run(device: str) -> list[Tensor]:
        params = parameters(device, taeda.float32)
        optimizer = taeda.optim.AdamW(params, 0.1, fused=True)
        scaler = taeda.amp.GradScaler(device, init_scale=8.0, growth_interval=1)
        loss = sum((p * p).sum() for p in params)
        scaler.scale(loss).backward()
        if bad is not None:
            params[0].grad[8500] = bad
        scaler.step(optimizer)
        scaler.update()
        scale = taeda.tensor(scaler.get_scale())
        return [scale, *(p.detach() for p in params)]

    got, want = run("cuda"), run("cpu")
    assert got[0].item() == (16.0 if bad is None else 4.0)
    for a, b in zip(got, want, strict=True):
        assert taeda.allclose(a.cpu(), b, rtol=1e-5)
