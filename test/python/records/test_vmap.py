"""vmap of every operator that PyTorch's samples reach equals a loop, nested too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import taeda
from all_calls import OVERLOADS, Function, all_calls, argument_names
from axes_cells import SIZE, assert_same, perturbed
from taeda import _C

# Overloads whose definition takes an argument from the others; calls that differ in it
# alone are none that autograd makes.
FOLLOWS = {
    "native_layer_norm_backward": "mean and rstd are those of input",
    "native_group_norm_backward": "mean and rstd are those of input",
    "_cross_entropy_rows_backward": "log_sum_exp and total_weight are those of self",
    "nll_loss_backward": "total_weight is that of target and weight",
    "nll_loss2d_backward": "total_weight is that of target and weight",
}
# How many overloads may be run element by element.
MOST_LOOPING = 17


def choices(names: list[str]) -> Iterator[list[str]]:
    """All tensors differ, and where there are several, each by itself."""
    yield names
    if len(names) > 1:
        yield from ([name] for name in names)


def variants(tensors: list, moved: bool) -> list[list]:
    return [[perturbed(t, i, moved) for t in tensors] for i in range(SIZE)]


def stacked(results: list[tuple]) -> list[taeda.Tensor]:
    return [taeda.stack(list(parts)) for parts in zip(*results, strict=True)]


def looped(function: Function) -> tuple[list[list], list]:
    """Arguments that differ, and the results of a call with each."""
    for moved in (True, False):
        examples = variants(function.tensors, moved)
        try:
            return examples, [function(*each) for each in examples]
        except (RuntimeError, ValueError, IndexError):
            if not moved:
                raise
    raise AssertionError


def check(function: Function) -> None:
    examples, results = looped(function)
    got = taeda.vmap(function)(*stacked(examples))
    for have, want in zip(got, stacked(results), strict=True):
        assert_same(have, want, values_too=True)


def check_nested(function: Function) -> None:
    """The outer map over all, the inner one over the first tensor only."""
    examples, results = looped(function)
    inner = (0, *(None for _ in function.tensors[1:]))
    twice = [
        taeda.stack([t, t]) if i == 0 else t for i, t in enumerate(stacked(examples))
    ]
    outer = (1, *(0 for _ in function.tensors[1:]))
    mapped = taeda.vmap(taeda.vmap(function, in_dims=inner), in_dims=outer)
    for have, want in zip(mapped(*twice), stacked(results), strict=True):
        pair = taeda.stack([want, want], 1)
        assert_same(have, pair, values_too=True)


def told(name: str, what: object, error: Exception) -> str:
    return f"{name} {what}: {type(error).__name__}: {str(error)[:300]}"


ERRORS = (AssertionError, RuntimeError, ValueError, TypeError, IndexError, KeyError)


def test_every_call() -> None:
    done: Counter[str] = Counter()
    looping: Counter[str] = Counter()
    failures = []
    for name, calls in all_calls().items():
        for values in [] if name in FOLLOWS else calls:
            names = argument_names(OVERLOADS[name].schema, values)
            for chosen in choices(names):
                before = _C._functorch.loops()
                try:
                    check(Function(OVERLOADS[name].schema, values, chosen))
                    done[name] += 1
                except ERRORS as error:
                    failures.append(told(name, chosen, error))
                looping[name] += _C._functorch.loops() - before
    slow = sorted(+looping)
    print(f"{done.total()} calls of {len(done)} overloads mapped")
    print(f"element by element: {len(slow)} overloads: {' '.join(slow)}")
    assert not failures, "\n".join(failures)
    assert len(done) > 440 and done.total() > 2500
    assert len(slow) <= MOST_LOOPING


def test_nested() -> None:
    done, failures = 0, []
    for name, calls in all_calls().items():
        for values in [] if name in FOLLOWS else calls[:1]:
            schema = OVERLOADS[name].schema
            try:
                check_nested(Function(schema, values, argument_names(schema, values)))
                done += 1
            except ERRORS as error:
                failures.append(told(name, "nested", error))
    print(f"{done} calls mapped twice")
    assert not failures, "\n".join(failures)
    assert done > 440


@pytest.mark.parametrize("name", ["sort", "mm", "index_select"])
def test_a_wrong_result_is_seen(name: str) -> None:
    values = all_calls()[name][-1]
    schema = OVERLOADS[name].schema
    function = Function(schema, values, argument_names(schema, values)[:1])
    _, results = looped(function)
    other = [tuple(t.flip(-1) * 2 for t in each) for each in results]
    with pytest.raises(AssertionError):
        for have, want in zip(stacked(results), stacked(other), strict=True):
            assert_same(have, want, values_too=True)
