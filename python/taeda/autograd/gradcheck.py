"""Derivatives by backward against finite differences, in double precision."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import taeda
from taeda.autograd._gradcheck_sparse import cells
from taeda.autograd._gradcheck_sparse import dense_values as _flat
from taeda.autograd._gradcheck_sparse import places as _places

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative is wrong; the message shows the worst entry."""


def _tensors(values) -> tuple:
    if isinstance(values, taeda.Tensor):
        return (values,)
    return tuple(values)


def _differentiable(values) -> list:
    return [v for v in values if isinstance(v, taeda.Tensor) and v.requires_grad]


def _floats(results) -> list:
    """Of what a function returned, the tensors that can have derivatives."""
    return [
        o
        for o in _tensors(results)
        if isinstance(o, taeda.Tensor) and (o.is_floating_point() or o.is_complex())
    ]


def _outputs(func: Callable, inputs) -> list:
    return [o for o in _floats(func(*inputs)) if o.requires_grad]


# Finite differences -----------------------------------------------------------


def _values(func: Callable, inputs, index: int) -> tuple:
    """Shape, dtype and elements of one of `_floats`."""
    chosen = _floats(func(*inputs))[index]
    return chosen.shape, chosen.dtype, _flat(chosen)


def _slopes(above: tuple, below: tuple, size: float) -> list:
    """The difference quotients of two results of `_values`.

    Raises:
        AssertionError: they are of different kinds.
    """
    for what, a, b in zip(("shape", "dtype"), below[:2], above[:2], strict=True):
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs "
                f"are perturbed by {size:g}, but got: {what}s {a} and {b}."
            )
    pairs = zip(above[2], below[2], strict=True)
    return [(a - b) / (2 * size) for a, b in pairs]


def _differences(func: Callable, inputs, index: int, data, place, step) -> list:
    """d output / d (one element of an input), along `step`."""
    before = data[place].item()
    size = abs(step)
    try:
        data[place] = before + step
        above = _values(func, inputs, index)
        data[place] = before - step
        below = _values(func, inputs, index)
    finally:
        data[place] = before
    return _slopes(above, below, size)


def _real_parts(columns: list, output_is_complex: bool) -> list[list[float]]:
    """One real function per output element, or two of a complex one."""
    if not output_is_complex:
        return [columns]
    return [[z.real for z in columns], [z.imag for z in columns]]


def _numerical(func: Callable, inputs, index: int, tensor, output, eps: float) -> list:
    """rows[part][input element][output element], as PyTorch defines gradients.

    For a real function s of z = x + iy that is ds/dx + i ds/dy.
    """
    rows: list[list] = [[] for _ in range(2 if output.is_complex() else 1)]
    for cell in cells(tensor):
        if cell is None:
            for row in rows:
                row.append([0.0] * output.numel())
            continue
        data, place = cell
        along = _differences(func, inputs, index, data, place, eps)
        parts = _real_parts(along, output.is_complex())
        if tensor.is_complex():
            across = _differences(func, inputs, index, data, place, eps * 1j)
            other = _real_parts(across, output.is_complex())
            parts = [
                [complex(x, y) for x, y in zip(p, q, strict=True)]
                for p, q in zip(parts, other, strict=True)
            ]
        for row, part in zip(rows, parts, strict=True):
            row.append(part)
    return rows


# Backward -------------------------------------------------------------------------


def _seed(output, place, value):
    seed = taeda.zeros(output.shape, dtype=output.dtype, device=output.device)
    seed[place] = value
    return seed


def _vjp(output, wanted: list, seed) -> list:
    return list(
        taeda.autograd.grad(output, wanted, seed, retain_graph=True, allow_unused=True)
    )


def _analytical(output, wanted: list, options) -> list:
    """jacobian[input][part][input element][output element]."""
    values = (1, 1j) if output.is_complex() else (1,)
    found = [[[[] for _ in _places(t)] for _ in values] for t in wanted]
    for place in _places(output):
        for part, value in enumerate(values):
            grads = _vjp(output, wanted, _seed(output, place, value))
            again = _vjp(output, wanted, _seed(output, place, value))
            for i, (t, g, h) in enumerate(zip(wanted, grads, again, strict=True)):
                _check_form(i, t, g, options)
                row = [0.0] * t.numel() if g is None else _flat(g)
                _check_repeatable(i, row, h, options)
                row = _of_entries(t, row, options)
                for element, entry in zip(found[i][part], row, strict=True):
                    element.append(entry)
    return found


def _of_entries(tensor, row: list, options) -> list:
    """A gradient without what a masked check leaves out: elements of no entry."""
    if tensor.layout is taeda.strided or not options["masked"]:
        return row
    pairs = zip(row, cells(tensor), strict=True)
    return [0.0 if cell is None else value for value, cell in pairs]


def _check_form(index: int, tensor, grad, options) -> None:
    if grad is None:
        return
    if grad.shape != tensor.shape:
        raise GradcheckError(
            f"Analytical gradient has incorrect size: {tuple(grad.shape)} for input "
            f"{index} of size {tuple(tensor.shape)}"
        )
    if options["check_grad_dtypes"] and grad.dtype != tensor.dtype:
        raise GradcheckError(
            f"Gradient for input {index} has dtype {grad.dtype}, the input "
            f"{tensor.dtype}"
        )


def _check_repeatable(index: int, row: list, again, options) -> None:
    other = [0.0] * len(row) if again is None else _flat(again)
    worst = max((abs(a - b) for a, b in zip(row, other, strict=True)), default=0.0)
    if worst > options["nondet_tol"]:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and "
            "grad_output multiple times gives different values, although analytical "
            f"gradient matches numerical gradient. Input {index}: the difference is "
            f"{worst:g}, the tolerance for nondeterminism was {options['nondet_tol']}."
        )


# Comparison -----------------------------------------------------------------------


def _compare(analytical: list, numerical: list, output: int, tensor: int, options):
    """Raises with the worst entry of a Jacobian that does not fit."""
    worst, where = 0.0, None
    pairs = list(enumerate(zip(analytical, numerical, strict=True)))
    for part, (left, right) in reversed(pairs):
        if where is not None:  # the imaginary part is named before the real one
            break
        for i, (row_a, row_n) in enumerate(zip(left, right, strict=True)):
            for j, (a, n) in enumerate(zip(row_a, row_n, strict=True)):
                excess = abs(a - n) - (options["atol"] + options["rtol"] * abs(n))
                if not excess <= 0 and (where is None or not excess <= worst):
                    worst, where = excess, (part, i, j, a, n)
    if where is None:
        return
    part, i, j, a, n = where
    what = "While considering the imaginary part of complex outputs only, " * part
    raise GradcheckError(
        f"{what}Jacobian mismatch for output {output} with respect to input {tensor},\n"
        f"worst at output element {j} and input element {i}:\n"
        f"numerical: {n!r}\nanalytical: {a!r}\n"
        f"difference {abs(a - n):.6g}, allowed "
        f"{options['atol'] + options['rtol'] * abs(n):.6g}"
    )


def _check_slow(func: Callable, inputs, outputs: list, options) -> None:
    wanted = _differentiable(inputs)
    for o, output in enumerate(outputs):
        analytical = _analytical(output, wanted, options)
        for i, tensor in enumerate(wanted):
            place = options["places"][o]
            numerical = _numerical(func, inputs, place, tensor, output, options["eps"])
            _compare(analytical[i], numerical, o, i, options)


def _unit(count: int, is_complex: bool, generator: random.Random) -> list:
    """A random direction."""
    raw = [
        complex(generator.gauss(0, 1), generator.gauss(0, 1))
        if is_complex
        else generator.gauss(0, 1)
        for _ in range(count)
    ]
    norm = sum(abs(z) ** 2 for z in raw) ** 0.5 or 1.0
    return [z / norm for z in raw]


def _like(values: list, tensor):
    made = taeda.tensor(values, dtype=tensor.dtype, device=tensor.device)
    return made.reshape(tensor.shape)


def _check_fast(func: Callable, inputs, outputs: list, options) -> None:
    """One random direction in and one out, instead of the whole Jacobian."""
    generator = random.Random(0)
    wanted = _differentiable(inputs)
    for o, output in enumerate(outputs):
        v = _unit(output.numel(), output.is_complex(), generator)
        grads = _vjp(output, wanted, _like(v, output))
        again = _vjp(output, wanted, _like(v, output))
        for i, tensor in enumerate(wanted):
            _check_form(i, tensor, grads[i], options)
            row = [0.0] * tensor.numel() if grads[i] is None else _flat(grads[i])
            _check_repeatable(i, row, again[i], options)
            u = _unit(tensor.numel(), tensor.is_complex(), generator)
            if tensor.layout is not taeda.strided:
                pairs = zip(u, cells(tensor), strict=True)
                u = [0.0 if cell is None else z for z, cell in pairs]
            got = _dot(row, u)
            place = options["places"][o]
            slope = _directional(func, inputs, place, tensor, u, options["eps"])
            want = _dot(v, slope)
            _compare([[[got]]], [[[want]]], o, i, _scaled(options, u, v))


def _scaled(options, u: list, v: list) -> dict:
    """Options for v J u, whose error adds up those of all entries of J."""
    count = sum(map(abs, u)) * sum(map(abs, v))
    return {**options, "atol": options["atol"] * count}


def _dot(a: list, b: list) -> float:
    """The real part of <a, b>."""
    return sum(
        complex(x).real * complex(y).real + complex(x).imag * complex(y).imag
        for x, y in zip(a, b, strict=True)
    )


def _directional(func, inputs, index: int, tensor, u: list, eps: float) -> list:
    moved = [(cell, z) for cell, z in zip(cells(tensor), u, strict=True) if cell]
    before = [data[place].item() for (data, place), _ in moved]

    def at(step: float) -> list:
        for ((data, place), z), value in zip(moved, before, strict=True):
            data[place] = value + step * z
        return _values(func, inputs, index)

    try:
        above, below = at(eps), at(-eps)
    finally:
        at_rest = zip(moved, before, strict=True)
        for ((data, place), _), value in at_rest:
            data[place] = value
    return _slopes(above, below, eps)


# The two checks ---------------------------------------------------------------------


def _check_inputs(inputs: tuple) -> None:
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but "
            "none of the them have requires_grad=True."
        )
    for i, tensor in enumerate(inputs):
        if not isinstance(tensor, taeda.Tensor) or not tensor.requires_grad:
            continue
        if tensor.dtype not in (taeda.float64, taeda.complex128):
            import warnings

            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are "
                "not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if tensor.layout is taeda.strided and any(
            st == 0 and sz > 1
            for st, sz in zip(tensor.stride(), tensor.shape, strict=True)
        ):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only "
                "supports inputs that are non-overlapping to be able to compute the "
                "numerical gradients correctly. You should call .contiguous on the "
                "input before passing it to gradcheck."
            )


def _check_linear(output, wanted: list) -> None:
    """Backward is linear: a gradient of zeros gives zeros, in the inputs' form."""
    found = _vjp(output, wanted, taeda.zeros_like(output))
    for tensor, grad in zip(wanted, found, strict=True):
        if grad is None:
            continue
        if grad.layout is not taeda.strided:
            _check_layout(tensor, grad)
            grad = grad.to_dense()
        if (grad != 0).any():
            raise GradcheckError(
                "backward not multiplied by grad_output: a gradient of zeros gave "
                "others"
            )


def _check_layout(tensor, grad) -> None:
    if grad.layout != tensor.layout:
        raise GradcheckError(
            f"grad is incorrect layout ({grad.layout} is not {tensor.layout})"
        )
    if grad.layout is not taeda.sparse_coo:
        return
    for name in ("sparse_dim", "dense_dim"):
        got, want = getattr(grad, name)(), getattr(tensor, name)()
        if got != want:
            raise GradcheckError(
                f"grad is sparse tensor, but has incorrect {name} {got}, expected "
                f"{want}"
            )


class _NoGradient(taeda.autograd.Function):
    """A copy by whose backward no gradient comes."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return None


def _check_undefined(func: Callable, inputs: tuple) -> None:
    """Backward must do without gradients of all outputs, and of all but one."""
    outputs = _outputs(func, inputs)
    cases = [[_NoGradient.apply(o) for o in outputs]]
    for index in range(len(outputs) if len(outputs) > 1 else 0):
        given = _outputs(func, inputs)
        given[index] = _NoGradient.apply(given[index])
        cases.append(given)
    for case in cases:
        zeros = [taeda.zeros_like(o) for o in case]
        text = (
            "Expected backward function to handle undefined output grads: those of "
            "outputs that nobody used"
        )
        try:
            found = taeda.autograd.grad(
                case, _differentiable(inputs), zeros, allow_unused=True
            )
        except RuntimeError as error:
            _say_undefined()
            raise GradcheckError(f"{text}. It raised: {error}") from error
        for grad in found:
            if grad is not None and (_dense(grad) != 0).any():
                _say_undefined()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output "
                    "grads are undefined or zero."
                )


def _dense(tensor):
    return tensor if tensor.layout is taeda.strided else tensor.to_dense()


def _say_undefined() -> None:
    import warnings

    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is "
        "enabled by default. check_undefined_grad=False leaves it out.",
        stacklevel=6,
    )


def _check_no_outputs(func: Callable, inputs: tuple, options) -> None:
    """Outputs that require no grad must not depend on the inputs."""
    for index, output in enumerate(_floats(func(*inputs))):
        for i, tensor in enumerate(_differentiable(inputs)):
            rows = _numerical(func, inputs, index, tensor, output, options["eps"])
            if any(entry != 0 for part in rows for row in part for entry in row):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output "
                    f"{index} requires no grad but depends on input {i}"
                )


def _run(func: Callable, inputs: tuple, options) -> None:
    _check_inputs(inputs)
    results = _floats(func(*inputs))
    outputs = [o for o in results if o.requires_grad]
    # Where they stand among results that have no derivative.
    options["places"] = [i for i, o in enumerate(results) if o.requires_grad]
    if any(o.layout is not taeda.strided for o in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call "
            "to_dense(masked_grad=...) on the output of fn for gradcheck."
        )
    if not outputs:
        _check_no_outputs(func, inputs, options)
        return
    if options["check_backward_ad"]:
        check = _check_fast if options["fast_mode"] else _check_slow
        check(func, inputs, outputs, options)
        for output in outputs:
            _check_linear(output, _differentiable(inputs))
        if options["check_undefined_grad"]:
            _check_undefined(func, inputs)
    if options["check_forward_ad"] or options["check_batched_grad"]:
        from taeda.autograd import _gradcheck_modes as modes

        modes.check(func, inputs, outputs, options)


# What gradgradcheck tells gradcheck.
_PASSED_ON = (
    "eps atol rtol raise_exception nondet_tol check_undefined_grad check_grad_dtypes "
    "check_batched_grad fast_mode"
).split()


def gradcheck(
    func: Callable,
    inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether backward agrees with finite differences, for each input.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: those that require grad are checked; double precision is needed.
        eps: the step of the differences.
        atol, rtol: the tolerance.
        raise_exception: raise GradcheckError instead of returning False.
        nondet_tol: how much two equal backward passes may differ.
        check_undefined_grad: backward must do with gradients for some outputs alone.
        check_grad_dtypes: gradients must have their input's dtype.
        check_batched_grad: backward of a batch of gradients must be that of each.
        check_batched_forward_grad: the same for tangents.
        check_forward_ad: whether forward mode is checked.
        check_backward_ad: whether backward is checked.
        fast_mode: compare in one random direction only.
        masked: whether gradients of sparse inputs count at their entries alone.

    Raises:
        GradcheckError: a derivative is wrong.
        ValueError: an output is sparse.
        AssertionError: options that do not go together.

    Example:
        >>> x = taeda.rand(3, dtype=taeda.float64, requires_grad=True)
        >>> taeda.autograd.gradcheck(taeda.sin, (x,))
        True
    """
    options = locals()
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be "
            "True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    try:
        _run(func, _tensors(inputs), options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs,
    grad_outputs=None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradients, as functions of the inputs and grad_outputs.

    Args:
        check_fwd_over_rev: whether forward mode of backward is checked.
        check_rev_over_rev: whether backward of backward is checked.
        others: as those of `gradcheck`.

    Raises:
        GradcheckError: a second derivative is wrong.
        AssertionError: options that do not go together.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be "
            "True"
        )
    for name in ("check_undefined_grad", "check_batched_grad"):
        if locals()[name] and not check_rev_over_rev:
            raise AssertionError(
                f"Setting {name}=True requires check_rev_over_rev to be True"
            )
    options = locals()
    given = _tensors(inputs)
    if grad_outputs is None:
        grad_outputs = [
            _random_grad(o, gen_non_contig_grad_outputs) for o in _outputs(func, given)
        ]
    seeds = _tensors(grad_outputs)

    def gradients(*args):
        values, grads = list(args[: -len(seeds)]), args[-len(seeds) :]
        for i, value in enumerate(given):
            if isinstance(value, taeda.Tensor) and value.requires_grad:
                values[i] = values[i].requires_grad_()  # tangents take it away
        # Differences are taken without recording, gradients need it.
        with taeda.autograd.enable_grad():
            found = taeda.autograd.grad(
                _outputs(func, values),
                _differentiable(values),
                grads,
                create_graph=True,
                allow_unused=True,
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*given, *seeds),
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        **{name: options[name] for name in _PASSED_ON},
    )


def _random_grad(output, strided: bool):
    generator = random.Random(1)
    values = [generator.gauss(0, 1) for _ in range(output.numel())]
    if output.is_complex():
        values = [complex(v, generator.gauss(0, 1)) for v in values]
    grad = _like(values, output)
    if strided:
        grad = taeda.stack([grad, grad], -1)[..., 0]
    return grad.requires_grad_()


class _CallableModule(type(sys)):
    """`taeda.autograd.gradcheck` is the function, also where the module is meant."""

    def __call__(self, *args, **kwargs) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
