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
    "buckets_of_sizes": {"bucket_cap_mb_list": [0.0001, 25]},
    "buffers_apart": {"forward_sync_buffers": False},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_as_one_process(tmp_path, name):
    alone = training(0, 1, {})
    for weights in run(tmp_path, "training", 3, OPTIONS[name]):
        assert not isinstance(weights, str), weights
        for got, want in zip(weights, alone, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_low_precision(tmp_path):
    first, second = run(tmp_path, "low_precision", 2)
    assert first["inside"] == ["bfloat16"] * 3
    assert first["parameters"] == first["gradients"] == {"float32"}
    assert first["buffer"] == "float16"
    assert first["names"] == ["scale", "0.weight", "0.bias", "1.weight", "1.bias"]
    assert first["fell"]
    assert first["weights"] == second["weights"]
