"""DistributedDataParallel against one process with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest
from programs import training
from ranks import run

OPTIONS = {
    "plain": {},
    "small_buckets": {"bucket_cap_mb": 0.0001},
    "find_unused": {"find_unused_parameters": True},
    "static": {"static_graph": True},
    "views": {"gradient_as_bucket_view": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_as_one_process(tmp_path, name):
    alone = training(0, 1, {})
    for weights in run(tmp_path, "training", 3, OPTIONS[name]):
        assert not isinstance(weights, str), weights
        for got, want in zip(weights, alone, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
