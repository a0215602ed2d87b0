"""gradcheck's other modes: forward mode, and batches of gradients and tangents."""

from __future__ import annotations

import random
from collections.abc import Callable

import taeda
from taeda._functorch.vmap import vmap
from taeda.autograd import forward_ad
from taeda.autograd.gradcheck import (
    GradcheckError,
    _dense,
    _differentiable,
    _directional,
    _dot,
    _flat,
    _floats,
    _like,
    _numerical,
    _random_grad,
    _real_parts,
    _scaled,
    _unit,
    _vjp,
)
from taeda.autograd.gradcheck import _compare as _compare_entries

__all__ = ["check"]

_BATCH = 2


def check(func: Callable, inputs, outputs: list, options) -> None:
    """What `options` asks for beside backward itself.

    Raises:
        GradcheckError: a derivative is wrong.
    """
    wanted = _differentiable(inputs)
    if options["check_forward_ad"]:
        fast = options["fast_mode"]
        (_forward_fast if fast else _forward_slow)(func, inputs, outputs, options)
    if options["check_batched_grad"]:
        for output in outputs:
            _batched_gradients(output, wanted)
    if options["check_batched_forward_grad"]:
        _batched_tangents(func, inputs, options["places"])


def _push(func: Callable, inputs, index: int, direction) -> list:
    """The outputs' tangents for one of input `index`; None where there is none.

    The other inputs have tangents of zeros.
    """
    given = list(inputs)
    with forward_ad.dual_level():
        for i in _positions(inputs):
            values = inputs[i].detach()
            tangent = direction if i == index else taeda.zeros_like(values)
            given[i] = forward_ad.make_dual(values, tangent)
        floats = _floats(func(*given))
        return [forward_ad.unpack_dual(o).tangent for o in floats]


def _along(func: Callable, inputs, index: int, direction, outputs, options) -> list:
    """The derivative of each output along a direction, as numbers."""
    moved = _push(func, inputs, index, _like(direction, inputs[index]))
    found = [moved[place] for place in options["places"]]
    return [
        [0.0] * output.numel() if tangent is None else _flat(tangent)
        for output, tangent in zip(outputs, found, strict=True)
    ]


def _positions(inputs) -> list[int]:
    return [
        i
        for i, t in enumerate(inputs)
        if isinstance(t, taeda.Tensor) and t.requires_grad
    ]


def _forward_slow(func: Callable, inputs, outputs: list, options) -> None:
    for place, index in enumerate(_positions(inputs)):
        tensor = inputs[index]
        rows: list = [[[] for _ in range(1 + o.is_complex())] for o in outputs]
        for element in range(tensor.numel()):
            columns = _unit_columns(func, inputs, index, element, outputs, options)
            for row, part in zip(sum(rows, []), sum(columns, []), strict=True):
                row.append(part)
        for o, output in enumerate(outputs):
            at = options["places"][o]
            numerical = _numerical(func, inputs, at, tensor, output, options["eps"])
            _compare(rows[o], numerical, o, place, options)


def _unit_columns(func, inputs, index: int, element: int, outputs, options) -> list:
    """By output and its part, the derivative by one element, as gradients define it."""
    tensor = inputs[index]

    def columns(value) -> list:
        unit = [value if i == element else 0 for i in range(tensor.numel())]
        along = _along(func, inputs, index, unit, outputs, options)
        pairs = zip(along, outputs, strict=True)
        return [_real_parts(d, output.is_complex()) for d, output in pairs]

    found = columns(1)
    if not tensor.is_complex():
        return found
    return [
        [
            [complex(x, y) for x, y in zip(p, q, strict=True)]
            for p, q in zip(parts, other, strict=True)
        ]
        for parts, other in zip(found, columns(1j), strict=True)
    ]


def _forward_fast(func: Callable, inputs, outputs: list, options) -> None:
    """One random direction in and one out, instead of the whole Jacobian."""
    generator = random.Random(2)
    seeds = [_unit(o.numel(), o.is_complex(), generator) for o in outputs]
    for place, index in enumerate(_positions(inputs)):
        tensor = inputs[index]
        u = _unit(tensor.numel(), tensor.is_complex(), generator)
        along = _along(func, inputs, index, u, outputs, options)
        for o, v in enumerate(seeds):
            at = options["places"][o]
            differences = _directional(func, inputs, at, tensor, u, options["eps"])
            got, want = _dot(v, along[o]), _dot(v, differences)
            scaled = _scaled(options, u, v)
            _compare([[[got]]], [[[want]]], o, place, scaled)


def _compare(analytical, numerical, output: int, tensor: int, options) -> None:
    try:
        _compare_entries(analytical, numerical, output, tensor, options)
    except GradcheckError as error:
        text = str(error).replace("Jacobian mismatch", _FORWARD, 1)
        raise GradcheckError(text) from None


_BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation"
)
_FORWARD = "Jacobian computed with forward mode mismatch"


def _batched_gradients(output, wanted: list) -> None:
    """A batch of gradients must give what each gives by itself."""
    seeds = taeda.stack([_random_grad(output, False) for _ in range(_BATCH)]).detach()
    scale = taeda.arange(1, _BATCH + 1, dtype=taeda.float64).to(seeds.dtype)
    seeds = seeds * scale.reshape(-1, *[1] * output.dim())
    each = [_vjp(output, wanted, seed) for seed in seeds]
    try:
        found = taeda.autograd.grad(
            output,
            wanted,
            seeds,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n{_BATCHED}"
        ) from error
    for i, got in enumerate(found):
        _same_batch(got, [row[i] for row in each], f"gradients of input {i}")


def _batched_tangents(func: Callable, inputs, places: list) -> None:
    """A batch of tangents must give what each gives by itself."""
    for index in _positions(inputs):
        tensor = inputs[index]
        seed = _random_grad(tensor, False).detach()
        seeds = taeda.stack([seed, 2 * seed])
        each = [_push(func, inputs, index, s) for s in seeds]
        for o in places:
            if each[0][o] is None:
                continue
            try:
                got = vmap(lambda s, i=index, o=o: _push(func, inputs, i, s)[o])(seeds)
            except RuntimeError as error:
                raise GradcheckError(
                    f"While computing batched tangents, got: {error}"
                ) from error
            _same_batch(got, [row[o] for row in each], f"tangents of output {o}")


def _same_batch(got, rows: list, what: str) -> None:
    if got is None and all(row is None for row in rows):
        return
    got = _dense(got)
    rows = [taeda.zeros_like(got[0]) if r is None else _dense(r) for r in rows]
    want = taeda.stack(rows)
    if not taeda.allclose(got, want):
        worst = (got - want).abs().max().item()
        raise GradcheckError(f"{_BATCHED}: {what} differ by up to {worst:g}")
