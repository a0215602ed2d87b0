"""Maxima at random windows, and put back to their places."""

from __future__ import annotations

import numpy as np
import pytest
import taeda

PLANES = {2: (9, 8), 3: (6, 7, 8)}


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("batch", [(2, 3), (3,)], ids=["batch", "one"])
def test_fractional_windows(same, values, d, batch):
    samples = np.random.default_rng(1).random((batch[0] if len(batch) > 1 else 1, 3, d))

    def program(T, x, samples):
        pool = getattr(T.nn.functional, f"fractional_max_pool{d}d")
        return pool(
            x,
            (2,) * (d - 1) + (3,),
            output_size=(4,) * (d - 1) + (3,),
            _random_samples=samples.detach(),
            return_indices=True,
        )

    same(program, values(*batch, *PLANES[d]), samples)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_unpooling_undoes_the_choice(same, values, d):
    def program(T, x):
        F = T.nn.functional
        y, where = getattr(F, f"max_pool{d}d")(x, 2, stride=2, return_indices=True)
        return getattr(F, f"max_unpool{d}d")(y, where, 2, stride=2)

    same(program, values(2, 3, *(6, 4, 8)[:d]))


def test_invalid_place():
    x, where = taeda.ones(1, 1, 1, 1), taeda.tensor([[[[9]]]])
    with pytest.raises(RuntimeError, match="invalid max index: 9"):
        taeda.nn.functional.max_unpool2d(x, where, 2)
