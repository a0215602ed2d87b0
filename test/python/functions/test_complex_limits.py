"""Functions of complex numbers with infinite and missing parts, against PyTorch's."""

from __future__ import annotations

import itertools
import math

import pytest
import taeda
import torch

PARTS = (0.0, -0.5, math.inf, -math.inf, math.nan)
NUMBERS = [complex(re, im) for re, im in itertools.product(PARTS, PARTS)]


def agree(function, dtype: str, **options) -> None:
    results = []
    for library in (taeda, torch):
        x = library.tensor(NUMBERS, dtype=getattr(library, dtype))
        found = library.view_as_real(getattr(library, function)(x, **options))
        results.append(torch.tensor(found.tolist(), dtype=torch.float64))
    torch.testing.assert_close(*results, equal_nan=True, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "options", [{}, {"nan": 1.5}, {"nan": -1.0, "posinf": math.inf, "neginf": 2.0}]
)
def test_replaced_parts(dtype: str, options: dict) -> None:
    agree("nan_to_num", dtype, **options)


def test_replaced_parts_have_no_gradient() -> None:
    x = taeda.tensor([complex(math.inf, 1), 2 + 3j], requires_grad=True)
    taeda.view_as_real(taeda.nan_to_num(x)).sum().backward()
    assert x.grad.tolist() == [0, 1 + 1j]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("function", ["exp", "exp2", "sinh", "cosh"])
def test_infinite_real_parts_without_a_direction(dtype: str, function: str) -> None:
    agree(function, dtype)
