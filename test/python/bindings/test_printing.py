"""Tensors print character by character as PyTorch prints them."""

from __future__ import annotations

import random

import pytest
import taeda

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int16", "int8", "uint8")
SHAPES = (
    (),
    (1,),
    (7,),
    (2, 3),
    (3, 1, 2),
    (2, 2, 2, 3),
    (40, 40),
    (1200,),
    (9, 9, 20),
)
CASES = 250


def numbers(rng: random.Random, kind: str, count: int) -> list:
    """Values that exercise every branch of the notation."""
    style = rng.randrange(9)
    if kind == "int":
        top = (1, 3, 10, 100, 120, 120, 5, 7, 90)[style]
        return [rng.randint(0, top) for _ in range(count)]
    if kind == "bool":
        return [rng.random() < 0.5 for _ in range(count)]
    makers = (
        lambda: rng.random(),
        lambda: float(rng.randint(-9, 9)),
        lambda: rng.uniform(-1, 1) * 1e-6,
        lambda: rng.uniform(-1, 1) * 10.0 ** rng.randint(-7, 4),
        lambda: float(rng.randint(0, 60000)),
        lambda: rng.choice([0.0, 1.0, float("nan"), float("inf"), -float("inf")]),
        lambda: rng.choice([0.0, -0.0]),
        lambda: rng.choice([0.5, float("nan"), -2.25]),
        lambda: rng.uniform(-3e4, 3e4),
    )
    return [makers[style]() for _ in range(count)]


def nested(flat: list, shape: tuple[int, ...]):
    if not shape:
        return flat.pop()
    return [nested(flat, shape[1:]) for _ in range(shape[0])]


def size(shape: tuple[int, ...]) -> int:
    total = 1
    for s in shape:
        total *= s
    return total


def same_text(ours, theirs) -> None:
    assert repr(ours).replace("taeda.", "torch.") == repr(theirs)


def make_case(rng: random.Random):
    dtype = rng.choice((*FLOATS, *FLOATS, *INTS, "bool", "complex64", "complex128"))
    shape = rng.choice(SHAPES)
    if dtype.startswith("complex"):
        parts = [numbers(rng, "float", size(shape)) for _ in range(2)]
        values = [complex(a, b) for a, b in zip(*parts, strict=True)]
    else:
        kind = "bool" if dtype == "bool" else "int" if dtype in INTS else "float"
        values = numbers(rng, kind, size(shape))
    return nested(values, shape), dtype


@pytest.mark.parametrize("seed", range(CASES))
def test_random_tensors(torch, seed):
    data, dtype = make_case(random.Random(seed))
    ours = taeda.tensor(data, dtype=getattr(taeda, dtype))
    theirs = torch.tensor(data, dtype=getattr(torch, dtype))
    same_text(ours, theirs)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
def test_empty(torch, shape, dtype):
    same_text(
        taeda.zeros(shape, dtype=getattr(taeda, dtype)),
        torch.zeros(shape, dtype=getattr(torch, dtype)),
    )


def test_requires_grad_and_parameter(torch):
    same_text(
        taeda.tensor([1.0, 2.5], requires_grad=True),
        torch.tensor([1.0, 2.5], requires_grad=True),
    )


def test_meta(torch):
    same_text(
        taeda.zeros(2, 3, device="meta"),
        torch.zeros(2, 3, device="meta"),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"sci_mode": True},
        {"sci_mode": False},
        {"linewidth": 40},
        {"edgeitems": 1, "threshold": 5},
        {"profile": "short"},
        {"profile": "full"},
    ],
)
@pytest.mark.parametrize("seed", range(12))
def test_options(torch, options, seed):
    rng = random.Random(seed)
    data, dtype = make_case(rng)
    ours = taeda.tensor(data, dtype=getattr(taeda, dtype))
    theirs = torch.tensor(data, dtype=getattr(torch, dtype))
    try:
        taeda.set_printoptions(**options)
        torch.set_printoptions(**options)
        same_text(ours, theirs)
    finally:
        taeda.set_printoptions(profile="default")
        torch.set_printoptions(profile="default")


def test_subclass_shows_its_name(torch):
    def named(base):
        return type("Mine", (base,), {})

    same_text(
        taeda.tensor([1.0]).as_subclass(named(taeda.Tensor)),
        torch.tensor([1.0]).as_subclass(named(torch.Tensor)),
    )
