"""gradcheck's other modes: forward mode, and batches of gradients and tangents."""

from __future__ import annotations

import random
from collections.abc import Callable

import taeda
from taeda._functorch.vmap import vmap
from taeda.autograd import forward_ad
from taeda.autograd.gradcheck import (
    GradcheckError,
    _differentiable,
    _directional,
    _dot,
    _flat,
    _like,
    _numerical,
    _outputs,
    _random_grad,
    _real_parts,
    _tensors,
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
        _batched_tangents(func, inputs, outputs)


def _push(func: Callable, inputs, index: int, direction) -> list:
    """The outputs' tangents for one of input `index`; None where there is none."""
    with forward_ad.dual_level():
        given = list(inputs)
        given[index] = forward_ad.make_dual(given[index], direction)
        found = _tensors(func(*given))
        floats = [o for o in found if o.is_floating_point() or o.is_complex()]
        return [forward_ad.unpack_dual(o).tangent for o in floats]


def _along(func: Callable, inputs, index: int, direction, output: int) -> list:
    """The derivative of one output along a direction, as numbers."""
    tensor = inputs[index]
    direction = _like(direction, tensor)
    moved = _push(func, inputs, index, direction)[output]
    if moved is None:
        return [0.0] * _outputs(func, inputs)[output].numel()
    return _flat(moved)


def _positions(inputs) -> list[int]:
    return [
        i
        for i, t in enumerate(inputs)
        if isinstance(t, taeda.Tensor) and t.requires_grad
    ]


def _forward_slow(func: Callable, inputs, outputs: list, options) -> None:
    for o, output in enumerate(outputs):
        for place, index in enumerate(_positions(inputs)):
            tensor = inputs[index]
            rows: list[list] = [[] for _ in range(2 if output.is_complex() else 1)]
            for element in range(tensor.numel()):
                parts = _unit_column(func, inputs, index, element, o, output)
                for row, part in zip(rows, parts, strict=True):
                    row.append(part)
            numerical = _numerical(func, inputs, o, tensor, output, options["eps"])
            _compare(rows, numerical, o, place, options)


def _unit_column(func, inputs, index: int, element: int, o: int, output) -> list:
    """By part of the output, the derivative by one element, as gradients define it."""
    tensor = inputs[index]

    def unit(value) -> list:
        return [value if i == element else 0 for i in range(tensor.numel())]

    parts = _real_parts(_along(func, inputs, index, unit(1), o), output.is_complex())
    if not tensor.is_complex():
        return parts
    other = _real_parts(_along(func, inputs, index, unit(1j), o), output.is_complex())
    return [
        [complex(x, y) for x, y in zip(p, q, strict=True)]
        for p, q in zip(parts, other, strict=True)
    ]


def _forward_fast(func: Callable, inputs, outputs: list, options) -> None:
    """One random direction in and one out, instead of the whole Jacobian."""
    generator = random.Random(2)
    for o, output in enumerate(outputs):
        v = _unit(output.numel(), output.is_complex(), generator)
        for place, index in enumerate(_positions(inputs)):
            tensor = inputs[index]
            u = _unit(tensor.numel(), tensor.is_complex(), generator)
            got = _dot(v, _along(func, inputs, index, u, o))
            differences = _directional(func, inputs, o, tensor, u, options["eps"])
            _compare([[[got]]], [[[_dot(v, differences)]]], o, place, options)


def _compare(analytical, numerical, output: int, tensor: int, options) -> None:
    try:
        _compare_entries(analytical, numerical, output, tensor, options)
    except GradcheckError as error:
        text = str(error).replace("Jacobian mismatch", _FORWARD, 1)
        raise GradcheckError(text) from None


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
            f"While computing batched gradients, got: {error}"
        ) from error
    for i, got in enumerate(found):
        _same_batch(got, [row[i] for row in each], f"gradients of input {i}")


def _batched_tangents(func: Callable, inputs, outputs: list) -> None:
    """A batch of tangents must give what each gives by itself."""
    for index in _positions(inputs):
        tensor = inputs[index]
        seed = _random_grad(tensor, False).detach()
        seeds = taeda.stack([seed, 2 * seed])
        each = [_push(func, inputs, index, s) for s in seeds]
        for o in range(len(outputs)):
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
    want = taeda.stack([taeda.zeros_like(got[0]) if r is None else r for r in rows])
    if not taeda.allclose(got, want):
        worst = (got - want).abs().max().item()
        raise GradcheckError(
            f"gradcheck or gradgradcheck failed while testing batched gradient "
            f"computation: {what} differ by up to {worst:g}"
        )
