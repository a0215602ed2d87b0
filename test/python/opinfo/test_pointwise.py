"""Every pointwise record: values, in-place, out=, first and second derivatives."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import taeda
from pointwise_cases import (
    NUMPY_TYPES,
    TOLERANCE,
    arrays,
    kinds,
    pointwise_operators,
    reference,
)

OPERATORS = pointwise_operators()
IDS = [op.schema.name for op in OPERATORS]
HOMES = (taeda, taeda._C._special, taeda._C._nn, taeda.Tensor)


def named(name: str):
    """The function or method of that name."""
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


def function_of(op):
    function = named(op.record.python.name or op.record.name)
    reduces = any(a.name == "reduction" for a in op.functional.arguments)
    # Called from Python without it, losses give each element.
    return partial(function, reduction=1) if reduces else function


def inside_domain(op, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """The operands, moved to where the function is a number."""
    for move in (lambda a: a, np.abs, lambda a: np.abs(a) + 1):
        moved = [a if a.dtype == bool else move(a) for a in inputs]
        try:
            result = function_of(op)(*map(taeda.from_numpy, moved)).numpy()
        except RuntimeError:
            continue  # refused, as outside its domain
        if np.isfinite(result).all():
            return moved
    raise AssertionError(f"{op.schema.name}: nowhere finite")


def dtypes_of(op) -> list[str]:
    accepted = op.overload.body.dtypes.inputs
    return [name for name in NUMPY_TYPES if name in accepted]


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    error = TOLERANCE.get(want.dtype.name, 0)
    np.testing.assert_allclose(got, want, rtol=error, atol=error)


def test_the_suite_covers_the_records() -> None:
    assert len(OPERATORS) > 60
    missing = [op.schema.name for op in OPERATORS if reference(op) is None]
    assert not missing, "add references to test/opinfo/references.py"


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_values_in_all_layouts(op) -> None:
    function, want = function_of(op), reference(op)
    compared = 0
    for dtype in dtypes_of(op):
        for kind in kinds():
            inputs = arrays(op, dtype, kind)
            try:
                expected = want(*inputs)
            except (RuntimeError, TypeError, NotImplementedError):
                continue  # PyTorch refuses this dtype
            got = function(*map(taeda.from_numpy, inputs))
            assert_close(got.numpy(), expected)
            compared += 1
    assert compared


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_inplace_and_out(op) -> None:
    function = function_of(op)
    dtype = "f64" if "f64" in dtypes_of(op) else dtypes_of(op)[0]
    samples = inside_domain(op, arrays(op, dtype, "contiguous"))
    inputs = [taeda.from_numpy(a) for a in samples]
    plain = function(*inputs)
    derived = op.overload.derived
    if "out" in derived and not op.record.name.startswith("__"):
        out = taeda.empty(0, dtype=plain.dtype)
        assert function(*inputs, out=out) is out
        assert taeda.equal(out, plain)
    if "inplace" in derived and plain.dtype == inputs[0].dtype:
        self = inputs[0].clone()
        assert named(derived["inplace"].base)(self, *inputs[1:]) is self
        assert taeda.equal(self, plain)


def differentiable(op) -> bool:
    backward = op.overload.backward
    plain = backward is None or backward.differentiable
    return (
        plain
        and "f64" in dtypes_of(op)
        and "bool_out" != op.overload.body.dtypes.promote
    )


GRADIENTS = [op for op in OPERATORS if differentiable(op)]


def without_derivative(op) -> set[str]:
    """The arguments whose derivative the record refuses."""
    formulas = op.overload.backward.formulas if op.overload.backward else {}
    refused = [names for names, text in formulas.items() if "no_derivative(" in text]
    return {name for names in refused for name in names}


@pytest.mark.parametrize("op", GRADIENTS, ids=[op.schema.name for op in GRADIENTS])
def test_first_and_second_derivatives(op) -> None:
    function = function_of(op)
    samples = inside_domain(op, arrays(op, "f64", "contiguous"))
    inputs = [taeda.from_numpy(a[:2, :3].copy() if a.ndim else a) for a in samples]
    names = [a.name for a in op.arguments if a.type.is_tensor]
    for name, t in zip(names, inputs, strict=False):
        t.requires_grad_(t.is_floating_point() and name not in without_derivative(op))
    assert taeda.autograd.gradcheck(function, inputs)
    assert taeda.autograd.gradgradcheck(function, inputs)
