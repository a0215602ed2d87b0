"""Numbers beside tensors are tensors of one element: they wrap, as PyTorch's do."""

from __future__ import annotations

import operator

import pytest
import taeda
import torch

OPERATORS = {
    name: getattr(operator, name)
    for name in "add sub mul mod floordiv and_ or_ xor eq ne lt le gt ge".split()
}
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NUMBERS = (-1, -129, 200, 1000, 70_000, 2**33 + 5)


@pytest.mark.parametrize("length", [1, 3, 1200])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_integers_wrap(name, dtype, length):
    function = OPERATORS[name]
    for number in NUMBERS:
        found = []
        for T in (taeda, torch):
            x = T.arange(1, length + 1).to(getattr(T, dtype))
            try:
                found.append(function(x, number).tolist())
            except RuntimeError as error:  # a divisor that wraps to 0
                found.append("ZeroDivisionError" in str(error))
        assert found[0] == found[1], (number, found)


@pytest.mark.parametrize("length", [1, 1200])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "lt", "ge"])
def test_floats_beyond_the_type_are_infinite(name, dtype, length):
    function = OPERATORS[name]
    for number in (1e300, -1e300, 1e39, 70_000.0, 10**18):
        ours, theirs = (
            function(T.ones(length, dtype=getattr(T, dtype)), number)
            for T in (taeda, torch)
        )
        assert ours.tolist() == theirs.tolist(), number
        assert str(ours.dtype)[6:] == str(theirs.dtype)[6:]


def test_numbers_that_are_no_operands_must_fit():
    x = taeda.zeros(3, dtype=taeda.uint8)
    for call in (
        lambda: x.fill_(1000),
        lambda: taeda.add(x, x, alpha=1000),
        lambda: taeda.full((2,), 1000, dtype=taeda.uint8),
        lambda: x.masked_fill(x == 0, 1000),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            call()


def test_any_number_but_zero_is_true():
    mask = taeda.tensor([True, False] * 5)
    filled = taeda.zeros(10, dtype=taeda.bool).masked_fill(mask, 0.3)
    assert filled.tolist() == mask.tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_index_add_takes_a_factor_as_an_integer(dtype):
    found = []
    for T in (taeda, torch):
        x = T.zeros(3, 4, dtype=getattr(T, dtype))
        source = T.arange(20).reshape(5, 4).to(x.dtype)
        index = T.tensor([0, 2, 1, 2, 0])
        found.append(x.index_add(0, index, source, alpha=2.5).tolist())
    assert found[0] == found[1]
