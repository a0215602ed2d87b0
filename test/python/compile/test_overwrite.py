"""Inputs that a program writes to: their memory takes the results themselves."""

from __future__ import annotations

import pytest
import taeda
from taeda.func import functionalize

OPTIONS = {"options": {"blocking": True}}
SHAPES = [(7,), (64, 33), (3, 1, 5)]


def both(f, make, calls: int = 3):
    """What eager and compiled calls leave in their arguments and give back."""
    outcomes = []
    for run in (f, taeda.compile(f, **OPTIONS)):
        taeda.manual_seed(3)
        args = make()
        with taeda.no_grad():
            results = [run(*args) for _ in range(calls)]
        outcomes.append((args, results))
    (want, wanted), (found, given) = outcomes
    for a, b in zip(want, found, strict=True):
        taeda.testing.assert_close(b, a)
    for a, b in zip(wanted, given, strict=True):
        taeda.testing.assert_close(b, a)
    return found


def randoms(count: int, shape=(64, 33), **options):
    return lambda: [taeda.rand(shape, **options) for _ in range(count)]


def adam(p, g, m, v):
    m.lerp_(g, 0.1)
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    p.addcdiv_(m, v.sqrt() + 1e-8, value=-1e-2)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_of_adam(shape) -> None:
    found = both(adam, randoms(4, shape))
    assert found[0]._version == 3


def test_old_values_that_later_calls_read() -> None:
    def f(x, y):
        old = x @ y.t()
        x.mul_(2).add_(1)
        return old, y * 3 + 1

    both(f, randoms(2, (8, 8)))


def test_a_neighbours_element_is_read_before_it_is_written() -> None:
    def f(x):
        x.copy_(x.t() * 2 + x)

    both(f, randoms(1, (48, 48)))


def test_a_row_that_all_read() -> None:
    def f(x, y):
        x.copy_(x[0] * 2 + y)

    both(f, randoms(2))


def test_values_after_sums() -> None:
    def f(x):
        x.copy_(x.exp() / x.exp().sum(-1, keepdim=True))

    both(f, randoms(1))


def test_a_result_that_is_handed_out_too() -> None:
    def f(x, y):
        z = x * 2 + y
        x.copy_(z)
        z.add_(1).mul_(2)
        return z, x.sum()

    both(f, randoms(2))


def test_inputs_without_holes_in_another_order() -> None:
    def f(x, y):
        x.mul_(2).add_(y)

    both(f, lambda: [taeda.rand(9, 5).t(), taeda.rand(5, 9)])
    both(f, lambda: [taeda.rand(5, 18)[:, ::2], taeda.rand(5, 9)])


def test_a_part_of_a_tensor() -> None:
    def f(x, y):
        x.mul_(2).add_(y)

    base = taeda.rand(40)
    want, y = base.clone(), taeda.rand(32)
    run = taeda.compile(f, **OPTIONS)
    for _ in range(3):
        run(base[4:36], y)
        f(want[4:36], y)
    taeda.testing.assert_close(base, want)


def test_nothing_in_it() -> None:
    def f(x, y):
        x.mul_(2).add_(y)

    both(f, randoms(2, (0, 3)))


def test_another_dtype() -> None:
    def f(x, y):
        x.copy_(x.float() * 2 + y)

    both(f, lambda: [taeda.rand(70, dtype=taeda.bfloat16), taeda.rand(70)])


def test_what_is_saved_is_not_overwritten() -> None:
    """The backward pass of the loss needs the values before the write."""
    grads = []
    for wrap in (lambda f: f, lambda f: taeda.compile(f, **OPTIONS)):
        taeda.manual_seed(5)
        x, w = taeda.rand(40), taeda.rand(40, requires_grad=True)

        def f(x, w):
            y = (w * x.clone()).exp() + 1
            with taeda.no_grad():
                x.mul_(2).add_(w)
            return y.sum()

        run = wrap(f)
        for _ in range(2):
            run(x, w).backward()
        grads.append((x, w.grad))
    for a, b in zip(*grads, strict=True):
        taeda.testing.assert_close(b, a)


def test_a_call_that_raises_leaves_inputs_as_they_were() -> None:
    def f(x, index):
        x.mul_(2).add_(1)
        return taeda.zeros(4).index_select(0, index) * 2 + 1

    run = taeda.compile(f, **OPTIONS)
    x = taeda.ones(16)
    run(x, taeda.tensor([1]))
    with pytest.raises(IndexError):
        run(x, taeda.tensor([9]))
    assert x.tolist() == [3.0] * 16


def test_tensors_of_inference_mode_are_refused() -> None:
    def f(x):
        x.mul_(2).add_(1)

    run = taeda.compile(f, **OPTIONS)
    run(taeda.ones(8))
    with taeda.inference_mode():
        x = taeda.ones(8)
    with pytest.raises(RuntimeError, match="nference"):
        run(x)
    assert x.tolist() == [1.0] * 8


def gaps_then_strided(v):
    v.mul_(2)
    w = v.as_strided((2, 2), (3, 1), 0)  # of the memory, gaps counted
    w.add_(1)
    v.mul_(3)
    return w * 1, v * 1


def strided_then_gaps(v):
    w = v.as_strided((2, 2), (3, 1), 0)
    v.mul_(2)
    w.add_(1)
    return w.clone(), v * 1


@pytest.mark.parametrize("f", [gaps_then_strided, strided_then_gaps])
@pytest.mark.parametrize("wrap", [lambda f: taeda.compile(f, **OPTIONS), functionalize])
def test_views_by_strides_of_an_input_with_gaps(f, wrap) -> None:
    def outcome(run):
        whole = taeda.arange(9.0).view(3, 3)
        return [*run(whole[:, :2]), whole]

    taeda.testing.assert_close(outcome(wrap(f)), outcome(f), rtol=0, atol=0)


def test_equal_results_are_written_apart_from_what_is_saved() -> None:
    def f(x, y):
        a = y.sum(-1)
        z = x * a * x
        b = y.sum(-1)
        taeda._dynamo.graph_break()
        b.add_(5)
        return z, b

    x, y = taeda.ones(3, requires_grad=True), taeda.ones(3)
    z, b = taeda.compile(f, **OPTIONS)(x, y)
    z.sum().backward()
    assert x.grad.tolist() == [6.0] * 3 and b.item() == 8


def test_gradients_of_a_written_input_with_gaps() -> None:
    def f(v):
        v.view(-1).mul_(2)
        return v

    a = taeda.ones(3, 3, requires_grad=True)
    taeda.compile(f, **OPTIONS)((a * 1).select(-1, 0)).sum().backward()
    assert a.grad.tolist() == [[2.0, 0.0, 0.0]] * 3
