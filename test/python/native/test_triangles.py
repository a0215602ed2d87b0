"""tril and triu beyond the edges of their matrices."""

from __future__ import annotations

import pytest
import taeda

FARTHEST = (-(2**63), -(2**62), -9, 9, 2**62, 2**63 - 1)


@pytest.mark.parametrize("k", FARTHEST)
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 4), (4, 1), (1, 4)])
def test_all_or_nothing_is_kept(k: int, shape: tuple) -> None:
    x = taeda.ones(shape)
    nothing = taeda.zeros(shape)
    assert taeda.equal(x.tril(k), x if k > 0 else nothing)
    assert taeda.equal(x.triu(k), x if k < 0 else nothing)
    assert taeda.equal(x.clone().triu_(k), x.triu(k))
