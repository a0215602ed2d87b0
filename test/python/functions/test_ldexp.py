"""ldexp: dtypes, results whose powers are out of range, gradients."""

from __future__ import annotations

import itertools

import pytest
import taeda
import torch

BOTH = (taeda, torch)
DTYPES = "float16 bfloat16 float32 float64 int32 uint8".split()


@pytest.mark.parametrize("a, b", [*itertools.product(DTYPES, DTYPES)])
def test_dtypes_are_those_of_arithmetic(a, b):
    found = []
    for m in BOTH:
        x = m.tensor([1, 0, 3]).to(getattr(m, a))
        n = m.tensor([1, 2, 12]).to(getattr(m, b))
        for result in (m.ldexp(x, n), m.ldexp(x, n[2]), m.ldexp(x[2], n)):
            found.append((str(result.dtype).partition(".")[2], result.tolist()))
    assert found[:3] == found[3:]


def test_a_result_in_range_is_exact():
    cases = [(2.0**-10, 130), (3.0, -150), (1.5, 127), (5 * 2.0**-149, -1), (1.0, 128)]
    cases += [(float("inf"), 3), (float("nan"), 3)]
    found = []
    for m in BOTH:
        x = m.tensor([x for x, _ in cases])
        n = m.tensor([n for _, n in cases])
        found.append(str(m.ldexp(x, n).tolist()))
        found.append(str(m.ldexp(x.half(), m.tensor([20])).tolist()))
    assert found[:2] == found[2:]
    n = taeda.tensor([130.0, float("inf"), -float("inf")])
    assert taeda.ldexp(taeda.tensor(2.0**-10), n).tolist() == [2.0**120, n[1], 0]


def test_gradients():
    found = []
    for m in BOTH:
        x = m.tensor([1.0, 2.0, -3.0], requires_grad=True)
        n = m.tensor([1.5, 2.0, -1.0], requires_grad=True)
        m.ldexp(x, n).sum().backward()
        found.append(torch.tensor([x.grad.tolist(), n.grad.tolist()]))
    assert torch.allclose(*found)


def test_integers_are_not_written():
    with pytest.raises(RuntimeError, match="can't be cast"):
        taeda.tensor([1, 2]).ldexp_(taeda.tensor([1, 2]))
