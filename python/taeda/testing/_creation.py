"""make_tensor: random data for tests."""

from __future__ import annotations

import math

import taeda

__all__ = ["make_tensor"]


def make_tensor(
    *shape,
    dtype,
    device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format=None,
):
    """A tensor of values drawn evenly from [low, high).

    Args:
        shape: sizes, as separate arguments or one sequence.
        dtype, device: of the result.
        low, high: bounds; by default [-9, 9) for numbers ([0, 9) unsigned), [0, 2) for
            bool.
        requires_grad: whether the result requires grad.
        noncontiguous: whether every second element of a larger tensor is taken.
        exclude_zero: replaces zeros by the smallest positive value.
        memory_format: layout of the result.

    Raises:
        ValueError: bounds out of order or outside the dtype.
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive"
        )
    low, high = _bounds(dtype, low, high)
    drawn = shape
    if noncontiguous and math.prod(shape) > 1:
        drawn = (*shape[:-1], 2 * shape[-1]) if shape else shape
    made = _draw(drawn, dtype, device, low, high)
    if drawn != shape:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        is_real = dtype.is_floating_point or dtype.is_complex
        tiny = taeda.finfo(dtype).tiny if is_real else 1
        made[made == 0] = tiny
    return made.requires_grad_() if requires_grad else made


def _bounds(dtype, low, high) -> tuple[float, float]:
    if dtype == taeda.bool:
        default, floor, ceiling = (0, 2), 0, 2
    elif dtype.is_floating_point or dtype.is_complex:
        info = taeda.finfo(dtype)
        default, floor, ceiling = (-9, 9), info.min, info.max
    else:
        info = taeda.iinfo(dtype)
        default = (-9, 10) if dtype.is_signed else (0, 10)
        floor, ceiling = info.min, info.max + 1
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if low > high or (whole and low == high):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low >= ceiling or high <= floor:
        raise ValueError(
            f"make_tensor: [{low}, {high}) is outside [{floor}, {ceiling}) of {dtype}"
        )
    return max(low, floor), min(high, ceiling)


def _draw(shape, dtype, device, low, high):
    if dtype.is_complex:
        made = taeda.empty(shape, dtype=dtype, device=device)
        taeda.view_as_real(made).uniform_(low, high)
        return made
    if dtype.is_floating_point:
        drawn = taeda.float32 if dtype.itemsize == 1 else dtype
        made = taeda.empty(shape, dtype=drawn, device=device).uniform_(low, high)
        return made.to(dtype)
    low, high = math.ceil(low), math.ceil(high)
    made = taeda.randint(low, high, shape, device=device, dtype=taeda.int64)
    return made.to(dtype)
