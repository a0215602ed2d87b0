"""Sharded training against one process of the reference with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest
import sharded_programs as programs
import torch
from ranks import run


@pytest.fixture(scope="module")
def alone() -> dict:
    """Weights of the reference after training with AdamW."""
    net = programs.model(torch)
    programs.train(torch, net)
    return {k: v.numpy() for k, v in net.state_dict().items()}


def gradients(*steps: int) -> dict:
    """Of the reference, summed over the given batches."""
    net = programs.model(torch)
    for step in steps:
        programs.loss_of(torch, net, *programs.batch(torch, step)).backward()
    return {k: p.grad.numpy() for k, p in net.named_parameters()}


def sharded(tmp_path, name: str, world: int = 2) -> list:
    """What `sharded_programs.name` returned at each rank, which must agree."""
    found = run(tmp_path, f"sharded_programs.{name}", world)
    for result in found:
        assert not isinstance(result, (str, int)), result
    return found


def close(got: dict, want: dict, tolerance: float = 1e-11) -> None:
    """Asserts that both have the same names and values."""
    assert list(got) == list(want)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "world"),
    [("wrappings", 3), ("shardings", 3), ("grids", 4), ("composed", 2)],
)
def test_as_one_process(tmp_path, alone, name, world):
    for result in sharded(tmp_path, name, world):
        assert len(result) >= 3
        for weights in result.values():
            close(weights, alone)


@pytest.mark.parametrize("world", [2, 4])
def test_memory_by_formula(tmp_path, world):
    for result in sharded(tmp_path, "memory", world):
        assert len(result) == 4
        for parts, with_gradients in result.values():
            assert parts == pytest.approx(1.0, abs=0.05)
            assert with_gradients == pytest.approx(1.0, abs=0.05)


def test_states(tmp_path):
    names = list(programs.model(torch).state_dict())
    for result in sharded(tmp_path, "states"):
        assert len(result) == 6
        for (kind, _), (same, missing, keys) in result.items():
            assert same
            assert not missing
            if kind != "LOCAL_STATE_DICT":
                assert keys == names
            else:
                assert [k for k in keys if k.endswith("_flat_param")]


def test_resume_on_other_ranks(tmp_path, alone):
    for folder in ("two", "three"):
        (tmp_path / folder).mkdir()
    names = sorted(alone)
    first, second = sharded(tmp_path / "two", "saved", 2)
    assert first == (names, names)
    assert second == (0, 0)
    for weights in sharded(tmp_path / "three", "resumed", 3):
        close(weights, alone)


def test_whole_parameters(tmp_path):
    shapes = [(n, tuple(p.shape)) for n, p in programs.model(torch).named_parameters()]
    grads = gradients(0)
    for found in sharded(tmp_path, "summons"):
        assert len(found["outside"]) == 3
        assert all(name.endswith("_flat_param") for name in found["outside"])
        assert found["within"] == shapes
        assert (found["changed"] == 2.0).all()
        assert (found["not changed"] == 2.0).all()
        close(dict(zip(grads, found["gradients"], strict=True)), grads)
        assert ["rank0_only" in found["refused"][0], "NO_SHARD" in found["refused"][1]]
        assert "nothing" not in found["refused"]


def test_accumulation(tmp_path):
    start = programs.model(torch).state_dict()
    want = {k: start[k].numpy() - g for k, g in gradients(0, 1).items()}
    for found in sharded(tmp_path, "accumulations"):
        assert found.pop("none before")
        assert len(found) == 4
        for weights in found.values():
            close(weights, want)


def test_precisions(tmp_path):
    for found in sharded(tmp_path, "precisions"):
        assert found["wrapper"] == {
            "inside": ["bfloat16", "bfloat16"],
            "output": "bfloat16",
            "gradients": {"float32"},
            "parameters": {"float32"},
            "buffer": ["float16"],
            "saved": {"float32"},
        }
        # The hook was there before, and sees outputs before the policy casts them.
        assert found["fully_shard"] == {
            "inside": ["bfloat16", "bfloat16"],
            "output": "float32",
            "gradients": {"float32"},
            "parameters": {"float32"},
            "buffer": ["float32"],
            "saved": {"float32"},
        }


def test_frozen(tmp_path):
    net = programs.model(torch)
    net[0].requires_grad_(False)
    net[4].weight.requires_grad_(False)
    x, y = programs.batch(torch, 0)
    x.requires_grad_()
    programs.loss_of(torch, net, x, y).backward()
    torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1.0).step()
    want = {k: v.numpy() for k, v in net.state_dict().items()}
    for rank, found in enumerate(sharded(tmp_path, "frozen_and_unused")):
        assert set(found) == {"wrapper", "fully_shard"}
        for weights, grad in found.values():
            close(weights, want)
            rows = x.grad.numpy()[rank * 6 : (rank + 1) * 6]
            np.testing.assert_allclose(grad, 2 * rows, rtol=1e-11, atol=1e-12)


def test_clipping(tmp_path):
    flat = np.concatenate([g.reshape(-1) for g in gradients(0).values()])
    for found in sharded(tmp_path, "clippings"):
        for (before, after, norm), want in zip(
            found, (np.linalg.norm(flat), np.abs(flat).max()), strict=True
        ):
            assert before == pytest.approx(want, rel=1e-9)
            assert norm == pytest.approx(want, rel=1e-6)
            assert after == pytest.approx(0.1, rel=1e-4)


def test_scaler(tmp_path):
    for found in sharded(tmp_path, "scalings"):
        assert found == [(8.0, True), (4.0, False), (4.0, True)]


def test_beginnings(tmp_path):
    for found in sharded(tmp_path, "beginnings"):
        assert all(values == {1.0} for values in found["sent"].values())
        assert found["on meta"]
        assert "meta device" in found["refused"]
        assert found["output"] == [[5.5, 5.5]]


def test_handles(tmp_path):
    whole = gradients(0)
    for rank, found in enumerate(sharded(tmp_path, "handles")):
        assert found["names"][:2] == ["FSDPSequential", "FSDPLinear"]
        assert found["part"] == "Sequential"
        assert found["whole"] == ((8, 5), "Parameter")
        assert found["again"] == "DTensor"
        assert found["rows"] == (2, 1)[rank]
        assert found["hook"] == [4 * 5 + 4]
        if rank == 0:
            assert found["outside"] is None
        else:
            assert found["outside"].startswith("fully_shard: rank 1 is not one of ")
        np.testing.assert_allclose(found["halved"], whole["4.bias"] / 2, rtol=1e-11)
        assert found["refused"] == {
            "twice": "AssertionError",
            "container": "ValueError",
            "scalar": "ValueError",
            "factor": "ValueError",
            "uneven": "NotImplementedError",
            "copy": "AssertionError",
        }


def test_after_a_failure(tmp_path):
    start = programs.model(torch).state_dict()
    want = {k: start[k].numpy() - g for k, g in gradients(0).items()}
    for found in sharded(tmp_path, "failures"):
        for weights in found.values():
            close(weights, want)


def test_hooks_and_the_rest(tmp_path, alone):
    start = programs.model(torch).state_dict()
    want = {k: start[k].numpy() - g for k, g in gradients(0).items()}
    for found in sharded(tmp_path, "others"):
        close(found["scatter"], want, 1e-5)
        close(found["reduce"], want, 1e-5)
        close(found["bf16"], want, 2e-2)
        for name in ("offload wrapper", "offload fully_shard", "offload apart"):
            close(found[name], alone)
        assert found["ignored"] == (True, "DTensor")
        # Each half of the parameters was used at one of two ranks.
        assert found["unused"] == [0.5] * 4
