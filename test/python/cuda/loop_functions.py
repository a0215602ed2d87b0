"""Functions whose kernels are of every layout that the CUDA text has."""

from __future__ import annotations

from collections.abc import Callable

import taeda
from taeda.nn import functional as F

# Where 16-bit calls round in between, kernels do not: no function jumps where a sum of
# such numbers changes its sign.
Tensor = taeda.Tensor
FLOATS = (taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16)


def chain(x: Tensor, y: Tensor) -> Tensor:
    return taeda.tanh(x * y) * taeda.sigmoid(x) + taeda.exp(-y * y)


def broadcast(x: Tensor, y: Tensor) -> Tensor:
    return taeda.sigmoid(x * y[0] + y[:, :1]) - x


def turned(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x.t() * 2 + y.t(), taeda.where(x > y, x, y * 0.5)


def far_sines(x: Tensor, y: Tensor) -> Tensor:
    return taeda.sin(x * 1e5) + taeda.cos(y)


def softmax(x: Tensor, y: Tensor) -> Tensor:
    return taeda.softmax(x * 2 + y, -1)


def log_softmax(x: Tensor, y: Tensor) -> Tensor:
    return taeda.log_softmax(x * y, -1) * y


def layer_norm(x: Tensor, y: Tensor) -> Tensor:
    return F.layer_norm(x + y, x.shape[-1:], y[0], y[-1])


def rows(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    z = x * y + 1
    return z - z.mean(-1, keepdim=True), z.amax(-1), (z * 0.5).sum(-1)


def columns(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    z = x * y
    return z, z.sum(0), taeda.abs(z).amax(0)


def norm_of_columns(x: Tensor, y: Tensor) -> Tensor:
    z = x + y * 0.5
    centred = z - z.mean(0, keepdim=True)
    return centred / taeda.sqrt((centred * centred).mean(0, keepdim=True) + 1)


def everything(x: Tensor, y: Tensor) -> Tensor:
    return (x * y + taeda.abs(x)).sum()


def middle(x: Tensor, y: Tensor) -> Tensor:
    z = (x * y).unsqueeze(0).expand(3, *x.shape)
    return (z + y).sum(1)


def gelu_and_sums(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(x + y[0])


# By name: the function, and whether its backward kernels are looked at too.
FLOAT_FUNCTIONS: dict[str, tuple[Callable, bool]] = {
    "chain": (chain, True),
    "broadcast": (broadcast, True),
    "turned": (turned, False),
    "softmax": (softmax, True),
    "log_softmax": (log_softmax, True),
    "layer_norm": (layer_norm, True),
    "rows": (rows, False),
    "columns": (columns, False),
    "norm_of_columns": (norm_of_columns, True),
    "everything": (everything, True),
    "middle": (middle, False),
    "gelu_and_sums": (gelu_and_sums, True),
}
# Rows of one warp, sizes that nothing divides, rows of a block, few rows that blocks
# share, columns that blocks share; each on devices of so many processors. One gives
# wide accesses and many points to a block, many give several blocks to a point.
SHAPES: dict[tuple[int, ...], tuple[int, ...]] = {
    (16, 128): (1, 132),
    (33, 37): (1, 132),
    (5, 3000): (1, 132),
    (3, 24001): (132,),
    (2200, 31): (132,),
}
LARGE = ((3, 24001), (2200, 31))  # which fewer dtypes are tried on


def integers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x * 3 + y // 2, (x * y).sum(-1), taeda.maximum(x, y).amax(0) * 2


def bits(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    both = x & ~y
    return both | (x ^ y), both.any(-1), (x | y).all(0)


def inputs(shape: tuple[int, ...], dtype: taeda.dtype) -> list[Tensor]:
    if dtype.is_floating_point:
        return [taeda.randn(shape).to(dtype) for _ in range(2)]
    return [taeda.randint(0, 7, shape).to(dtype) for _ in range(2)]
