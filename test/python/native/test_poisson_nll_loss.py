"""Gradients of `poisson_nll_loss` in 16 bits: the order in which parts are added up."""

from __future__ import annotations

import pytest
import taeda
import torch


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_gradient_by_counts_is_pytorchs(name: str, reduction: str) -> None:
    def gradients(library):
        dtype = getattr(library, name)
        rates, counts = (
            library.tensor(values).to(dtype).requires_grad_() for values in given
        )
        loss = library.nn.functional.poisson_nll_loss(
            rates, counts, log_input=False, full=True, reduction=reduction
        )
        loss.sum().backward()
        return rates.grad.tolist(), counts.grad.tolist()

    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        given = (torch.rand(2, 50, generator=generator) * 9 + 0.1).tolist()
        assert gradients(taeda) == gradients(torch)
