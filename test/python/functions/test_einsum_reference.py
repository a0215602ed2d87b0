"""einsum of several operands against opt_einsum's, which multiplies with NumPy."""

from __future__ import annotations

import numpy as np
import opt_einsum
import pytest
import taeda

SIZES = dict(zip("abcdef", (2, 3, 4, 5, 3, 2), strict=True))
EQUATIONS = [
    "ab,bc,cd->ad",
    "ab,bc,cd,de->ae",
    "abc,cd,bd,e->ae",
    "ab,ab,ab->",
    "aab,bcc->",
    "ab,cd,ef->abcdef",
    "abcd,dcbe,ef->af",
    "ba,dc,acbd",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_chains_of_products(equation: str) -> None:
    generator = np.random.default_rng(7)
    operands = equation.partition("->")[0].split(",")
    arrays = [generator.normal(size=[SIZES[i] for i in o]) for o in operands]
    wanted = opt_einsum.contract(equation, *arrays)
    got = taeda.einsum(equation, *map(taeda.from_numpy, arrays)).numpy()
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
