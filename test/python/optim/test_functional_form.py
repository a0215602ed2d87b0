"""Optimizers as functions of lists, against PyTorch's."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
import taeda
import torch

KINDS = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split()
OPTIONS = {
    "alpha": 0.9,
    "amsgrad": True,
    "beta1": 0.9,
    "beta2": 0.95,
    "centered": True,
    "dampening": 0.0,
    "eps": 1e-6,
    "etaminus": 0.5,
    "etaplus": 1.2,
    "lambd": 1e-2,
    "lr": 0.1,
    "lr_decay": 0.1,
    "maximize": False,
    "momentum": 0.9,
    "momentum_decay": 0.004,
    "nesterov": True,
    "rho": 0.9,
    "step_size_max": 50.0,
    "step_size_min": 1e-6,
    "t0": 1.0,
    "weight_decay": 0.01,
}
STARTS = {"etas": 0.1, "mus": 1.0, "mu_products": 1.0, "step_sizes": 0.1}
NUMBERS = ("state_steps", "etas", "mus", "mu_products")


def _function(library, kind: str):
    return getattr(import_module(f"{library.__name__}.optim.{kind}"), kind)


def _lists(library, kind: str) -> dict:
    """Lists of two parameters and of what belongs to each."""
    found = {}
    for name, p in inspect.signature(_function(torch, kind)).parameters.items():
        if p.kind is p.KEYWORD_ONLY or p.default is not p.empty:
            continue
        shapes = [(), ()] if name in NUMBERS else [(3,), (2, 4)]
        start = STARTS.get(name, 0.0)
        found[name] = [library.full(s, start) for s in shapes]
        if name == "params":
            found[name] = [library.linspace(-1.0, 1.0, n) for n in (3, 8)]
            found[name][1] = found[name][1].reshape(2, 4)
        if name == "momentum_buffer_list" and kind == "sgd":
            found[name] = [None, None]
    return found


def _after(library, kind: str, options: dict, **more) -> list:
    lists = _lists(library, kind)
    grads = next(n for n in lists if n in ("grads", "d_p_list"))
    for turn in range(3):
        scale = 1.0 + turn
        lists[grads] = [library.cos(p * scale) for p in lists["params"]]
        _function(library, kind)(*lists.values(), **more, **options)
    return [t.tolist() for values in lists.values() for t in values]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("foreach", [None, False])
def test_steps_are_pytorchs(kind, foreach):
    signature = inspect.signature(_function(torch, kind)).parameters
    options = {n: v for n, v in OPTIONS.items() if n in signature}
    expected = _after(torch, kind, options, foreach=foreach)
    for got, wanted in zip(
        _after(taeda, kind, options, foreach=foreach), expected, strict=True
    ):
        taeda.testing.assert_close(taeda.tensor(got), taeda.tensor(wanted))


@pytest.mark.parametrize("kind", KINDS)
def test_signatures_are_pytorchs(kind):
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()]
        for f in (_function(taeda, kind), _function(torch, kind))
    )
    assert ours == theirs


def test_what_does_not_fit_is_refused():
    lists = _lists(taeda, "sgd")
    del lists["momentum_buffer_list"][0]
    with pytest.raises(TypeError, match="missing 5 required keyword-only"):
        _function(taeda, "sgd")(*lists.values(), lr=0.1)
    options = {n: OPTIONS[n] for n in ("lr", "momentum", "dampening", "nesterov")}
    options |= {"weight_decay": 0.0, "maximize": False}
    with pytest.raises(ValueError, match="momentum_buffer_list: expected 2 tensors"):
        _function(taeda, "sgd")(*lists.values(), **options)


def test_all_are_in_one_place():
    from taeda.optim import _functional

    assert _functional.__all__ == KINDS
    assert all(getattr(_functional, k) is _function(taeda, k) for k in KINDS)
