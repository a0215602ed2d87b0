"""Bounds of random numbers that a dtype cannot hold are refused."""

from __future__ import annotations

import pytest
import taeda


def test_uniform_within_the_dtype() -> None:
    with pytest.raises(RuntimeError, match="from is out of bounds for Float"):
        taeda.empty(2).uniform_(-1e300, 0)
    with pytest.raises(RuntimeError, match="to is out of bounds for Half"):
        taeda.empty(2, dtype=taeda.float16).uniform_(0, 1e5)
    with pytest.raises(RuntimeError, match="uniform_ expects to-from <="):
        taeda.empty(2).uniform_(-3e38, 3e38)
    assert taeda.empty(9, dtype=taeda.float64).uniform_(-1e300, 0).min() < 0
    most = taeda.finfo(taeda.bfloat16).max
    assert taeda.empty(9, dtype=taeda.bfloat16).uniform_(0, most).isfinite().all()


@pytest.mark.parametrize(
    ("dtype", "most"),
    [
        (taeda.float16, 2**11 + 1),
        (taeda.bfloat16, 2**8 + 1),
        (taeda.int8, 128),
        (taeda.uint8, 256),
    ],
)
def test_permutations_that_a_dtype_can_tell_apart(dtype, most: int) -> None:
    assert sorted(taeda.randperm(most, dtype=dtype).tolist()) == list(range(most))
    text = f"n cannot be greater than {most} for"
    with pytest.raises(RuntimeError, match=text):
        taeda.randperm(most + 1, dtype=dtype)
    with pytest.raises(RuntimeError, match=text):
        taeda.randperm(most + 1, out=taeda.empty(0, dtype=dtype))
