"""What an operator `means` by others is what its kernel computes, gradients too."""

from __future__ import annotations

import pytest
import taeda
from all_calls import (
    OVERLOADS,
    all_calls,
    overload_of,
    refused_argument,
    tensors_in,
    with_tensors,
)

DEFINED = [
    name for name, o in OVERLOADS.items() if getattr(o.body, "means", None) is not None
]


def doubles(values: dict, constants: frozenset[str]) -> dict:
    """The call with leaves for all its tensors of floating point numbers, but for those
    of constant arguments."""

    def leaf(t: taeda.Tensor) -> taeda.Tensor:
        if t.is_complex():
            return t.detach().to(taeda.complex128).requires_grad_()
        if not t.is_floating_point():
            return t
        return t.detach().double().requires_grad_()

    leaves = {
        name: with_tensors(value, map(leaf, list(tensors_in(value))))
        for name, value in values.items()
    }
    for name in constants:
        constant = [t.detach() for t in tensors_in(leaves[name])]
        leaves[name] = with_tensors(leaves[name], iter(constant))
    return leaves


def weighed(results: list) -> taeda.Tensor:
    """One number that depends on every element of the results."""
    terms = []
    for t in results:
        real = taeda.view_as_real(t) if t.is_complex() else t
        factors = (0.3 * taeda.arange(real.numel(), dtype=real.dtype)).cos()
        terms.append((real * factors.reshape(real.shape)).sum())
    return sum(terms[1:], terms[0])


class Run:
    """A call's results, and the gradients of all leaves that have one."""

    def __init__(
        self,
        function,
        values: dict,
        like: Run | None = None,
        constants: frozenset[str] = frozenset(),
    ) -> None:
        self.constants = constants
        given = doubles(values, constants)
        self.results = list(tensors_in(function(**given)))
        own = [t.requires_grad for t in self.results]
        # What the record calls not differentiable is left out of both runs.
        self.differentiable = own if like is None else like.differentiable
        pairs = zip(self.results, self.differentiable, strict=True)
        chosen = [t for t, counts in pairs if counts]
        leaves = [t for v in given.values() for t in tensors_in(v) if t.requires_grad]
        self.gradients = (
            taeda.autograd.grad(weighed(chosen), leaves, allow_unused=True)
            if chosen
            else []
        )


def run(function, values: dict, like: Run | None = None, constants=frozenset()) -> Run:
    """A run in which what may not require gradients is a constant."""
    try:
        return Run(function, values, like, constants)
    except RuntimeError as error:
        refused = refused_argument(error)
        if refused not in values or refused in constants:
            raise
        return run(function, values, like, constants | {refused})


def same(have: taeda.Tensor, want: taeda.Tensor) -> bool:
    return have.shape == want.shape and taeda.allclose(
        have.detach(), want.detach(), rtol=1e-12, atol=1e-12, equal_nan=True
    )


def test_definitions_are_the_kernels() -> None:
    cells, gradients = 0, 0
    reached = set()
    for name in DEFINED:
        overload = overload_of(OVERLOADS[name].schema)
        for values in all_calls().get(name, []):
            want = run(overload, values)
            have = run(overload.decompose, values, want, want.constants)
            for a, b in zip(have.results, want.results, strict=True):
                assert same(a, b), f"{name}: {a}\n{b}"
            for a, b in zip(have.gradients, want.gradients, strict=True):
                # Arguments that the record leaves out have no derivative, though the
                # parts may know one.
                if a is not None and b is not None:
                    assert same(a, b), f"{name}: gradient {a}\n{b}"
                    gradients += 1
            cells += 1
            reached.add(name)
    print(f"{cells} calls of {len(reached)} definitions, {gradients} gradients")
    assert reached == set(DEFINED)
    assert cells > 35 and gradients > 60


def test_what_has_no_definition_says_so() -> None:
    x = taeda.ones(2, 2)
    assert taeda.ops.aten.mm.default.decompose(x, x) is NotImplemented
    assert taeda.ops.aten.exp.default.decompose(x) is NotImplemented


def test_a_composite_is_its_parts() -> None:
    x = taeda.rand(3, 4)
    want = taeda.ops.aten.matmul.default(x, x.t())
    assert taeda.equal(taeda.ops.aten.linalg_matmul.default.decompose(x, x.t()), want)
    with pytest.raises(RuntimeError, match="linalg_matmul"):
        taeda.ops.aten.linalg_matmul.default.decompose(x)
