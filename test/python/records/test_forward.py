"""Tangents of every differentiable operator are its differences; `linear:` is true."""

from __future__ import annotations

import taeda
from all_calls import (
    OVERLOADS,
    Function,
    all_calls,
    argument_names,
    refused_argument,
    tensors_in,
)
from axes_cells import perturbed

STEP = 1e-6
# Differences lose eps / STEP = 2e-10 of the largest value on the way, which may be some
# thousand times the result.
TOLERANCE = 1e-6
# Overloads whose tangent PyTorch defines otherwise than by differences, and why.
OTHERWISE = {
    "cholesky": "the matrix is taken to be Hermitian",
    "linalg_cholesky_ex": "the matrix is taken to be Hermitian",
    "linalg_eigh": "the matrix is taken to be Hermitian",
    "linalg_eigvalsh": "the matrix is taken to be Hermitian",
    "native_layer_norm_backward": "mean and rstd are those of input",
    "native_group_norm_backward": "mean and rstd are those of input",
    "native_batch_norm_backward": "mean and rstd are those of input",
    "_fused_rms_norm_backward": "rstd is that of input",
    "_cross_entropy_rows_backward": "log_sum_exp and total_weight are those of self",
    "_logcumsumexp_backward": "the totals are those of self",
    "prod.dim_int": "an integer among recorded arguments",
}
# Of these the others are statistics, which have no derivative.
FIRST_ONLY = {
    *("native_layer_norm", "native_group_norm", "native_batch_norm"),
    "_fused_rms_norm",
}
# Overloads whose derivative cannot be taken, or not twice, as a tangent needs. Two of
# them are igamma and igammac, which refuse that by their shape.
MOST_MISSING = 17


def smooth_arguments(name: str, values: dict) -> list[str]:
    """Arguments that have a derivative, of which all tensors are double."""
    overload = OVERLOADS[name]
    found = argument_names(overload.schema, values)
    if overload.family in ("kernel", "map", "view") and overload.backward is not None:
        given = {n for names in overload.backward.formulas for n in names}
        found = [n for n in found if n in given]
    return [n for n in found if all(map(is_double, tensors_in(values[n])))]


def is_double(t: taeda.Tensor) -> bool:
    return t.dtype == taeda.float64


def is_differentiable(name: str) -> bool:
    backward = OVERLOADS[name].backward
    return backward is None or backward.differentiable


def directions(tensors: list) -> list:
    """Small numbers that differ from element to element."""
    return [
        (taeda.arange(t.numel(), dtype=t.dtype) * 0.7 + i).sin().reshape(t.shape)
        for i, t in enumerate(tensors)
    ]


def slopes(function: Function, tangents: list) -> list:
    """Differences of each result, nan where those ahead and behind disagree."""

    def at(step: float) -> tuple:
        pairs = zip(function.tensors, tangents, strict=True)
        return function(*(t + step * v for t, v in pairs))

    found = []
    for a, m, b in zip(at(STEP), at(0.0), at(-STEP), strict=True):
        if not is_double(a):
            found.append(None)
            continue
        ahead, behind = (a - m) / STEP, (m - b) / STEP
        kink = (ahead - behind).abs() > 1e-3 * (1 + ahead.abs())
        found.append((0.5 * (ahead + behind)).masked_fill(kink, float("nan")))
    return found


def differentiable_results(name: str, count: int) -> list[bool]:
    wanted = OVERLOADS[name].differentiable_outputs
    returns = OVERLOADS[name].schema.returns
    if wanted is None or len(returns) != count:
        return [i == 0 or name not in FIRST_ONLY for i in range(count)]
    names = [r.name or f"result{i}" for i, r in enumerate(returns)]
    return [n in wanted for n in names]


def check(name: str, values: dict, constants: frozenset[str] = frozenset()) -> bool:
    schema = OVERLOADS[name].schema
    chosen = [n for n in smooth_arguments(name, values) if n not in constants]
    function = Function(schema, values, chosen)
    if not function.tensors or sum(t.numel() for t in function.tensors) > 400:
        return False
    tangents = directions(function.tensors)
    try:
        _, got = taeda.func.jvp(function, tuple(function.tensors), tuple(tangents))
    except RuntimeError as error:
        refused = refused_argument(error)
        if refused not in chosen:
            raise
        return check(name, values, constants | {refused})
    compared = False
    judged = differentiable_results(name, len(got))
    for have, want, counts in zip(got, slopes(function, tangents), judged, strict=True):
        if want is None or not counts:
            continue
        there = want.isfinite()
        have, want = have[there], want[there]
        scale = 1 + float(want.abs().max()) if want.numel() else 1.0
        assert taeda.allclose(have, want, rtol=TOLERANCE, atol=TOLERANCE * scale), (
            f"{have}\n{want}"
        )
        compared = compared or want.numel() > 0
    return compared


def test_every_tangent() -> None:
    done, names, missing, failures = 0, set(), set(), []
    for name, calls in all_calls().items():
        if not is_differentiable(name) or name in OTHERWISE:
            continue
        for values in calls:
            try:
                if check(name, values):
                    done += 1
                    names.add(name)
            except (AssertionError, RuntimeError, TypeError, ValueError) as error:
                if "derivative for" in str(error):
                    missing.add(name)
                    continue
                failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{done} tangents of {len(names)} overloads, {len(missing)} have none")
    assert not failures, "\n".join(failures)
    assert done > 800 and len(names) > 280
    assert len(missing) <= MOST_MISSING, sorted(missing)


def test_linear_is_linear() -> None:
    """f(a x + b y) = a f(x) + b f(y) for arguments that a record calls linear."""
    done = set()
    for name, calls in all_calls().items():
        for argument in OVERLOADS[name].linear:
            for values in calls:
                function = Function(OVERLOADS[name].schema, values, [argument])
                tensors = function.tensors
                if not tensors or not tensors[0].is_floating_point():
                    continue
                (x,) = tensors
                y = perturbed(x, 1, moved=True) + 0.25
                both = function(2.0 * x - 0.5 * y)
                parts = zip(both, function(x), function(y), strict=True)
                for have, first, second in parts:
                    if have.is_floating_point():
                        want = 2.0 * first - 0.5 * second
                        assert taeda.allclose(have, want, atol=1e-6), name
                done.add(name)
    print(f"{len(done)} overloads are linear")
    assert len(done) >= 20
