"""Operators whose formulas choose by parameters: values and slopes as PyTorch has."""

from __future__ import annotations

import re

import numpy as np
import pytest
import taeda
import torch
from scipy import special
from taeda.utils._python_dispatch import TorchDispatchMode
from tolerance import rounding

RNG = np.random.default_rng(4)
CLOSE = rounding("float64", 64)
X, Y, W = (RNG.uniform(0.05, 0.95, size=(3, 5)) for _ in range(3))

# (overload, arguments); the first tensor is differentiated.
CALLS = [
    *(("gelu", (X,), {"approximate": how}) for how in ("none", "tanh")),
    *(("logit", (X,), {"eps": eps}) for eps in (None, -1.0, 0.2)),
    ("nan_to_num", (X, 1.0, None, -2.0), {}),
    *(("round.decimals", (X * 50,), {"decimals": n}) for n in (-1, 0, 2)),
    *(("polygamma", (n, X), {}) for n in (0, 2)),
    *(("div.Tensor_mode", (X, Y), {"rounding_mode": m}) for m in (None, "floor")),
    *(("div.Scalar_mode", (X, 0.3), {"rounding_mode": m}) for m in (None, "trunc")),
    ("celu", (X - 0.5, 2.0), {}),
    *(("mse_loss", (X, Y, reduction), {}) for reduction in (0, 1, 2)),
    *(("huber_loss", (X, Y, 1, delta), {}) for delta in (0.2, 2.0)),
    *(("smooth_l1_loss", (X, Y, 2, beta), {}) for beta in (0.0, 0.3)),
    *(("soft_margin_loss", (X, Y, reduction), {}) for reduction in (0, 1)),
    *(("binary_cross_entropy", (X, Y, w, 1), {}) for w in (None, W)),
    *(
        ("binary_cross_entropy_with_logits", (X, Y, w, p, 1), {})
        for w in (None, W)
        for p in (None, W[0])
    ),
    *(
        ("linalg_vector_norm", (X - 0.5, order, [1]), {})
        for order in (0, 1, 2, 3.5, float("inf"), -float("inf"))
    ),
]


def overload(library, name: str):
    base, _, which = name.partition(".")
    return getattr(getattr(library.ops.aten, base), which or "default")


def gradients(library, name: str, args: tuple, named: dict):
    """The result, and gradients by each tensor of a weighted sum of it."""
    make = {torch: torch.from_numpy, taeda: taeda.from_numpy}[library]
    given = [
        make(a.copy()).requires_grad_() if isinstance(a, np.ndarray) else a
        for a in args
    ]
    result = overload(library, name)(*given, **named)
    result.sum().backward()
    tensors = [t for t in given if isinstance(t, library.Tensor)]
    grads = [None if t.grad is None else t.grad.numpy() for t in tensors]
    return result.detach().numpy(), grads


@pytest.mark.parametrize(("name", "args", "named"), CALLS, ids=str)
def test_values_and_gradients(name: str, args: tuple, named: dict) -> None:
    try:
        wanted, expected = gradients(torch, name, args, named)
    except RuntimeError as error:  # PyTorch has no derivative by these
        assert re.search("argument '(pos_weight|weight|target)'", str(error))
        return
    found, grads = gradients(taeda, name, args, named)
    if name == "polygamma":  # PyTorch's of order 1 errs by 5e-10
        expected = [special.polygamma(args[0] + 1, args[1])]
    np.testing.assert_allclose(found, wanted, rtol=CLOSE, atol=CLOSE)
    for ours, theirs in zip(grads, expected, strict=True):
        if theirs is not None:
            np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize(("name", "args", "named"), CALLS, ids=str)
def test_batches_and_meta(name: str, args: tuple, named: dict) -> None:
    place = next(i for i, a in enumerate(args) if isinstance(a, np.ndarray))
    call = overload(taeda, name)
    given = [taeda.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    batch = taeda.stack([given[place], given[place] * 0.9, given[place] * 0.5])

    def mapped(part):
        return call(*given[:place], part, *given[place + 1 :], **named)

    looped = taeda.stack([mapped(part) for part in batch])
    found = taeda.vmap(mapped)(batch)
    np.testing.assert_allclose(found.numpy(), looped.numpy(), rtol=1e-12)
    far = [a.to("meta") if isinstance(a, taeda.Tensor) else a for a in given]
    on_meta = call(*far, **named)
    assert on_meta.shape == mapped(given[place]).shape
    assert on_meta.dtype == looped.dtype


@pytest.mark.parametrize(
    "name", ["mse_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss"]
)
def test_a_batch_has_more_elements_than_a_mean(name: str) -> None:
    """Each element of a batch is divided by its own number of elements."""
    x, y = taeda.from_numpy(X), taeda.from_numpy(Y)
    slope = taeda.func.grad(lambda a, b: overload(taeda, name)(a, b, 1))
    looped = taeda.stack([slope(a, b) for a, b in zip(x, y, strict=True)])
    found = taeda.vmap(slope)(x, y)
    np.testing.assert_allclose(found.numpy(), looped.numpy(), rtol=1e-12)


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_see_pytorchs_names() -> None:
    x = taeda.from_numpy(X)
    with Names() as names:
        taeda.nn.functional.gelu(x, approximate="tanh")
        x.logit(0.1)
        x.div(2.0, rounding_mode="floor")
        taeda.nn.functional.binary_cross_entropy_with_logits(x, x)
        taeda.linalg.vector_norm(x, 1)
    assert [name.removeprefix("aten.") for name in names.seen] == [
        "gelu.default",
        "logit.default",
        "div.Scalar_mode",
        "binary_cross_entropy_with_logits.default",
        "linalg_vector_norm.default",
    ]


def test_values_without_a_formula_are_refused() -> None:
    x = taeda.from_numpy(X)
    with pytest.raises(RuntimeError, match="approximate argument must be"):
        taeda.ops.aten.gelu.default(x, approximate="exact")
    with pytest.raises(RuntimeError, match="rounding_mode to be one of"):
        x.div(x, rounding_mode="up")
