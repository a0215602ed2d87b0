"""The same program in both libraries, values and gradients compared."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
from tolerance import rounding


@pytest.fixture(scope="session")
def torch():
    import torch

    return torch


def made(T, array):
    """A tensor of the library T; floating ones want gradients."""
    t = T.from_numpy(np.array(array))
    return t.requires_grad_() if t.is_floating_point() else t


def results(T, program, arrays) -> list:
    """Outputs of `program(T, *tensors)`, then gradients of their sum of squares."""
    inputs = [made(T, a) for a in arrays]
    outputs = program(T, *inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    used = [out for out in outputs if out.requires_grad]
    if used:
        sum((out * out).sum() for out in used).backward()
    grads = [t.grad for t in inputs]
    return [None if t is None else t.detach().numpy() for t in outputs + grads]


@pytest.fixture
def same(torch):
    """Asserts that both libraries give the same outputs and gradients."""

    def check(program, *arrays, error: float = 0) -> None:
        # Unless told: a thousand roundings, for sums and their gradients.
        error = error or rounding("float64", 1024)
        want, got = (results(T, program, arrays) for T in (torch, taeda))
        assert len(got) == len(want)
        for have, right in zip(got, want, strict=True):
            assert (have is None) == (right is None)
            if right is None:
                continue
            assert have.dtype == right.dtype
            assert have.shape == right.shape
            np.testing.assert_allclose(have, right, rtol=error, atol=error)

    return check


@pytest.fixture
def values():
    """Reproducible standard normal values."""

    def make(*shape: int, seed: int = 0, dtype: str = "float64"):
        return np.random.default_rng(seed).standard_normal(shape).astype(dtype)

    return make
