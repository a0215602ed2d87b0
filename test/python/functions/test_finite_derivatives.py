"""Forward-mode and second derivatives where an arm of the formula is infinite.

A gradient formula selects: elu's is exp(x) below 0 and 1 above. What is not selected
must not reach the derivative of the formula, as 0 times infinity.
"""

from __future__ import annotations

import pytest
import taeda
import torch

FAR = [-1000.0, -3.0, -1.0, 0.0, 1.0, 3.0, 1000.0]
FUNCTIONS = {
    "elu": lambda T, x: T.nn.functional.elu(x),
    "celu": lambda T, x: T.nn.functional.celu(x, 0.5),
    "selu": lambda T, x: T.nn.functional.selu(x),
    "mish": lambda T, x: T.nn.functional.mish(x),
    "logsigmoid": lambda T, x: T.nn.functional.logsigmoid(x),
    "softplus": lambda T, x: T.nn.functional.softplus(x),
    "sinc": lambda T, x: T.sinc(x),
    "logit": lambda T, x: T.logit(x, eps=1e-3),
    "power of zero": lambda T, x: T.pow(T.zeros_like(x), x),
    "power of the number zero": lambda T, x: T.pow(0.0, x),
    "zeroth power": lambda T, x: T.pow(x, T.zeros_like(x)),
    "copysign": lambda T, x: T.copysign(x, T.ones_like(x)),
    "atan2": lambda T, x: T.atan2(x, T.zeros_like(x)),
    "std of equals": lambda T, x: T.std(x * 0),
}


def first(library, function, x):
    return library.func.grad(lambda x: function(library, x).sum())(x)


def second(library, function, x):
    return library.func.grad(lambda x: first(library, function, x).sum())(x)


def pushed(library, function, x):
    ones = library.ones_like(x)
    return library.func.jvp(lambda x: function(library, x), (x,), (ones,))[1]


@pytest.mark.parametrize("derivative", [pushed, second])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_nan_of_what_is_not_selected(name, derivative) -> None:
    """Infinite and undefined only where they are so in PyTorch, else its values."""
    ours, theirs = (
        derivative(library, FUNCTIONS[name], library.tensor(FAR, dtype=library.float64))
        for library in (taeda, torch)
    )
    ours = torch.tensor(ours.tolist(), dtype=torch.float64)
    defined = ~theirs.isnan()
    assert not ours.isnan()[defined].any()
    # Where the pieces of elu meet there is no second derivative.
    kink = torch.tensor([derivative is second and x == 0 for x in FAR])
    compared = defined & ~kink if theirs.dim() else defined
    assert torch.allclose(ours[compared], theirs[compared], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers_of_no_dims_widen_nothing(dtype) -> None:
    """A guarded operand keeps the dtype that the formula computes in."""
    kind = getattr(taeda, dtype)
    base = taeda.tensor([0.0, 2.0], dtype=kind)
    exponent = taeda.tensor(2.0, dtype=taeda.float64)
    _, tangent = taeda.func.jvp(lambda x: x**exponent, (base,), (base + 1,))
    assert tangent.dtype is kind and tangent.tolist() == [0.0, 12.0]
