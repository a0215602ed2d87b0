"""Random programs of tensors for the loop compiler, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

import taeda

Tensor = taeda.Tensor
SHAPES = [(7,), (64,), (5, 33), (16, 128), (3, 4, 65), (2, 3, 4, 5), (130, 17)]
FLOATS = (taeda.float32, taeda.float64, taeda.bfloat16, taeda.float16)
INTS = (taeda.int64, taeda.int32, taeda.uint8, taeda.bool)

# Functions that keep values of any size within bounds, so that chains stay finite.
UNARY: list[Callable] = [
    taeda.tanh,
    taeda.sigmoid,
    taeda.abs,
    taeda.neg,
    taeda.relu,
    taeda.sin,
    taeda.erf,
    taeda.atan,
    lambda x: taeda.exp(-taeda.abs(x)),
    lambda x: taeda.log1p(taeda.abs(x)),
    lambda x: taeda.sqrt(taeda.abs(x) + 1),
    lambda x: taeda.nn.functional.gelu(taeda.clamp(x, -4, 4)),
    lambda x: taeda.nn.functional.silu(taeda.clamp(x, -4, 4)),
    lambda x: x * 0.5 + 1,
    lambda x: taeda.clamp(x, -1.5, 2.5),
    lambda x: taeda.where(x > 0, x, x * 0.25),
]
BINARY: list[Callable] = [
    taeda.add,
    taeda.sub,
    lambda a, b: taeda.mul(taeda.tanh(a), b),
    taeda.maximum,
    taeda.minimum,
    lambda a, b: a / (taeda.abs(b) + 1),
    lambda a, b: taeda.where(a < b, a, b * 0.5),
    lambda a, b: taeda.atan2(a, taeda.abs(b) + 1),
]
REDUCE: list[Callable] = [
    lambda x, d: x.mean(d, keepdim=True),
    lambda x, d: x.amax(d, keepdim=True),
    lambda x, d: x.amin(d, keepdim=True),
    lambda x, d: x.sum(d, keepdim=True) * 0.125,
]
ROWS: list[Callable] = [
    lambda x: taeda.softmax(x, -1),
    lambda x: taeda.log_softmax(x, -1),
    lambda x: taeda.nn.functional.layer_norm(x, x.shape[-1:]),
    lambda x: taeda.nn.functional.rms_norm(x, x.shape[-1:]),
]

INTEGER: list[Callable] = [
    lambda x, y: x + y,
    lambda x, y: x * 3 + y * 2,
    lambda x, y: (x > y) & (y != 2),
    lambda x, y: taeda.where(x >= y, x, y),
    lambda x, y: taeda.maximum(x, y),
    lambda x, y: x.sum(-1, keepdim=True) + y,
    lambda x, y: x.amax(0, keepdim=True) * y,
    lambda x, y: x.to(taeda.int16) + 1,
    lambda x, y: ~x.to(taeda.bool),
    lambda x, y: x.to(taeda.int32) // 3 + y.to(taeda.int64) % 5,
]


def _view(rng: random.Random, x: Tensor) -> Tensor:
    kind = rng.randrange(4)
    if kind == 0 and x.dim() > 1:
        return x.transpose(0, -1)
    if kind == 1:
        return x.reshape(-1) if rng.random() < 0.5 else x.unsqueeze(0)
    if kind == 2 and x.dim() > 1:
        return x.flatten(0, 1)
    return x[1:] if x.shape[0] > 1 else x


def float_program(seed: int, steps: int = 8) -> Callable:
    """A function of three tensors of one shape; always the same for a seed."""

    def program(*inputs: Tensor) -> tuple[Tensor, ...]:
        rng = random.Random(seed)
        values = list(inputs)
        for _ in range(steps):
            x = rng.choice(values)
            step = rng.random()
            if step < 0.4:
                values.append(rng.choice(UNARY)(x))
            elif step < 0.7:
                same = [v for v in values if v.shape == x.shape]
                values.append(rng.choice(BINARY)(x, rng.choice(same)))
            elif step < 0.8:
                dim = rng.choice([0, -1, tuple(range(x.dim()))])
                values.append(x - rng.choice(REDUCE)(x, dim))
            elif step < 0.9:
                values.append(rng.choice(ROWS)(x))
            else:
                values.append(_view(rng, x))
        made = values[len(inputs) :]
        return tuple(rng.sample(made, min(2, len(made)))) + (values[-1] * 1,)

    return program


def int_program(seed: int, steps: int = 8) -> Callable:
    """A function of integers, whose results are exact."""

    def program(*inputs: Tensor) -> tuple[Tensor, ...]:
        rng = random.Random(seed)
        values = list(inputs)
        for _ in range(steps):
            x, y = rng.choice(values), rng.choice(values)
            values.append(rng.choice(INTEGER)(x, y))
        return tuple(values[len(inputs) :])

    return program


def inputs(seed: int, dtype: taeda.dtype) -> list[Tensor]:
    """Three tensors of one shape, dense or strided."""
    rng = random.Random(seed)
    taeda.manual_seed(seed)
    shape = rng.choice(SHAPES)
    made = []
    for _ in range(3):
        if dtype.is_floating_point:
            made.append(taeda.randn(shape).to(dtype))
        else:
            made.append(taeda.randint(0, 7, shape).to(dtype))
    if rng.random() < 0.3 and len(shape) > 1:
        made[0] = made[0].transpose(0, -1).contiguous().transpose(0, -1)
    return made
