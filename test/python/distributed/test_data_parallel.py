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


@pytest.mark.parametrize("views", [False, True])
def test_unused_parameters(tmp_path, views):
    for pairs in run(tmp_path, "unused_parameters", 2, views):
        assert not isinstance(pairs, str), pairs
        for got, want in zip(pairs[::2], pairs[1::2], strict=True):
            for mine, whole in zip(got, want, strict=True):
                assert (mine is None) == (whole is None)
                if mine is not None:
                    np.testing.assert_allclose(mine, whole, rtol=1e-5, atol=1e-6)
        assert pairs[2][0] is None and pairs[2][2] is not None


def test_static_graph_that_is_computed_again(tmp_path):
    for pairs in run(tmp_path, "computed_again", 2):
        assert not isinstance(pairs, str), pairs
        for got, want in zip(pairs[::2], pairs[1::2], strict=True):
            for mine, whole in zip(got, want, strict=True):
                np.testing.assert_allclose(mine, whole, rtol=1e-5, atol=1e-6)


def test_passes_that_break(tmp_path):
    for rank, texts in enumerate(run(tmp_path, "broken_passes", 2)):
        assert texts["left out"] == "nothing was raised"
        unfinished = "Expected to have finished reduction in the prior iteration"
        who = f"did not receive grad for rank {rank}: "
        assert texts["after it"].startswith(f"RuntimeError: {unfinished}")
        assert "`find_unused_parameters=True`" in texts["after it"]
        assert f"Parameter indices which {who}0 1" in texts["after it"]
        assert f"{who}first.weight, first.bias" in texts["by name"]
        assert "Your training graph has changed in this iteration" in texts["changed"]
        assert "Expected to mark a variable ready only once." in texts["again"]
        assert "marked as ready twice" in texts["again"]
        assert texts["hook"] == "KeyError: 'bucket 0 of hooks'"
        assert unfinished in texts["after the hook"]
        assert texts["kept"] == "False"


def test_sparse_and_missing_gradients(tmp_path):
    for found in run(tmp_path, "other_gradients", 2):
        assert found["is sparse"]
        assert found["table"] == [[0.5] * 2, [0.5] * 2, [0] * 2, [1] * 2, [0] * 2]
        assert found["weight"] == [[3.0, 3.0], [3.0, 3.0]]
