"""Gradient modes in captured functions: their state inside, after, and after breaks."""

from __future__ import annotations

import pytest
import taeda
from taeda.compiler._frames import capture

kept_mode = taeda.no_grad()
log = []


class Noted:
    """A program's own context manager that tells what happens to it."""

    def __enter__(self):
        log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        log.append("exit" if kind is None else kind.__name__)
        return kind is ZeroDivisionError


def modes():
    return taeda.is_grad_enabled(), taeda.is_inference_mode_enabled()


def nested(x):
    seen = [modes()]
    with taeda.no_grad():
        a = x * 2
        seen.append(modes())
        with taeda.enable_grad():
            b = x * 3
            seen.append(modes())
            with taeda.set_grad_enabled(False):
                c = b + x
        d = a + x
    with taeda.inference_mode():
        e = x + 1
        seen.append(modes())
        with taeda.inference_mode(False):
            g = x + 2
    return a, b, c, d, x * 4, seen, e.is_inference(), g, modes()


@taeda.no_grad()
def decorated(x):
    return x * 2, modes()


@taeda.inference_mode
def inferred(x):
    return (x * 2).is_inference()


def decorators(x):
    inner = taeda.enable_grad()(lambda v: v * 3)
    with taeda.no_grad():
        return decorated(x), inner(x), x + 1, inferred(x), modes()


def exception_inside(x):
    try:
        with taeda.no_grad(), Noted():
            y = x * 2
            raise KeyError("k")
    except KeyError as error:
        y = y + len(error.args)
    with Noted():
        x = x + 1
        _ = 1 // 0
    return y, x, modes(), list(log)


def mode_of_another_place(x):
    with kept_mode:
        y = x * 2
    with kept_mode:
        return y + x, modes()


def switched(x):
    taeda.set_grad_enabled(False)
    y = x * 2
    taeda.set_grad_enabled(True)
    return y, x * 3


WHOLE = [nested, decorators, exception_inside, mode_of_another_place, switched]


@pytest.fixture
def compared(same):
    """Runs both and compares results, the log of `Noted`, and modes afterwards."""

    def compare(function, compiled, *args):
        log.clear()
        wanted = function(*args)
        wanted_log = list(log)
        log.clear()
        same(compiled(*args), wanted)
        assert log == wanted_log
        assert modes() == (True, False)
        log.clear()

    return compare


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_modes_are_part_of_one_graph(function, same, compared):
    x = taeda.randn(2, 3, requires_grad=True)
    compiled = capture(function, fullgraph=True)
    for _ in range(3):
        compared(function, compiled, x)
    assert compiled.explain()["graphs"] == 1
    with taeda.no_grad():
        same(compiled(x)[0], function(x)[0])
        assert not taeda.is_grad_enabled() or function is switched
    assert compiled.explain()["graphs"] == 2


def broken_in_nested(x):
    with taeda.no_grad():
        a = x * 2
        with taeda.enable_grad(), Noted():
            b = x * a.sum().item()
            with taeda.inference_mode():
                c = (x + b.sum().item()).is_inference()
        d = x + b
    return a, b, c, d, x + 1, modes()


def broken_in_kept(x):
    with kept_mode:
        y = x * x.sum().item()
    with kept_mode, taeda.enable_grad():
        z = x * x.sum().item()
    return y, z, x + 1, modes()


def test_modes_keep_attributes(compared):
    def made_inside(x):
        mode = taeda.no_grad()
        mode.note = [x]
        with mode:
            y = x * x.sum().item()
        return y, len(mode.note)

    def given(x, mode):
        mode.note = 3
        with mode:
            return x * 2

    x = taeda.ones(2, requires_grad=True)
    compiled, other = capture(made_inside), capture(given)
    for _ in range(2):
        compared(made_inside, compiled, x)
        mode = taeda.no_grad()
        assert not other(x, mode).requires_grad and mode.note == 3


def broken_in_decorated(x):
    @taeda.no_grad()
    def inner(v):
        return v * v.sum().item(), modes()

    return inner(x), x + 1, modes()


def broken_in_loop(x):
    out = []
    for i in range(3):
        with taeda.set_grad_enabled(i % 2 == 0), Noted():
            y = x * i
            if y.sum() > 1e9:
                continue
            out.append(y + x)
    return out, modes()


def broken_then_raised(x):
    try:
        with taeda.no_grad(), Noted():
            y = x * x.sum().item()
            raise KeyError("k")
    except KeyError:
        return y + x, modes()


def broken_then_passed(x):
    with taeda.no_grad(), Noted():
        y = x * x.sum().item()
        _ = 1 // 0
    return y + x, modes()


BROKEN = [
    broken_in_nested,
    broken_in_kept,
    broken_in_decorated,
    broken_in_loop,
    broken_then_raised,
    broken_then_passed,
]


@pytest.mark.parametrize("function", BROKEN, ids=lambda f: f.__name__)
def test_breaks_inside_of_modes(function, compared):
    x = taeda.ones(2, 3, requires_grad=True)
    compiled = capture(function)
    for _ in range(3):
        compared(function, compiled, x)
    got = compiled.explain()
    assert got["graphs"] >= 2
    assert not any(part["plain"] for part in got["parts"])


def test_an_exception_leaves_modes_once(same):
    def f(x, n):
        with taeda.no_grad(), Noted():
            y = x * x.sum().item()
            return y[n]

    compiled = capture(f)
    x = taeda.ones(2)
    same(compiled(x, 1), f(x, 1))
    log.clear()
    with pytest.raises(IndexError):
        compiled(x, 7)
    assert log == ["enter", "IndexError"] and modes() == (True, False)


def pick(x, index, table):
    with taeda.no_grad(), Noted():
        y = x.index_select(0, index) if table is None else table.add_(1)[index]
    return y, modes()


@pytest.mark.parametrize("write", [False, True])
def test_an_error_of_a_graph_leaves_modes_as_they_were(write, compared):
    compiled = capture(pick)
    x = taeda.ones(3)
    table = taeda.zeros(3) if write else None
    good, bad = taeda.tensor([0, 2]), taeda.tensor([7])
    compared(lambda *a: pick(*a)[1], lambda *a: compiled(*a)[1], x, good, table)
    bad = taeda.tensor([0, 7])
    before = None if table is None else table.clone()
    with pytest.raises((IndexError, RuntimeError)):
        compiled(x, bad, table)
    assert modes() == (True, False)
    if write:
        # The write is not done twice; nothing else of the part has happened.
        assert taeda.equal(table, before + 1) and log == []
    else:
        assert log == ["enter", "IndexError"] or log == ["enter", "RuntimeError"]
    log.clear()


def test_an_error_of_a_graph_after_a_break_leaves_what_was_entered():
    def f(x, index, table):
        with taeda.no_grad(), Noted():
            n = x.sum().item()
            table.add_(n)
            return x[index]

    compiled = capture(f)
    x, table = taeda.ones(3), taeda.zeros(3)
    compiled(x, taeda.tensor([0, 2]), table)
    log.clear()
    with pytest.raises(IndexError):
        compiled(x, taeda.tensor([0, 7]), table)
    assert log == ["enter", "IndexError"] and modes() == (True, False)
    assert table.tolist() == [6, 6, 6]


def test_writes_to_what_an_earlier_part_made(same, compared):
    def f(x):
        y = x * 2
        n = y.sum().item()
        y += n
        return y.sin_(), y.is_leaf

    x = taeda.ones(3, requires_grad=True)
    compiled = capture(f)
    compared(f, compiled, x)
    compared(f, compiled, x)
    assert not any(part["plain"] for part in compiled.explain()["parts"])
    grads = [taeda.autograd.grad(g(x)[0].sum(), x)[0] for g in (f, compiled)]
    same(*grads)


def test_inputs_made_in_inference_mode():
    def f(x):
        y = x * 2
        return x.is_inference(), y.is_inference(), y.requires_grad, x.is_leaf

    with taeda.inference_mode():
        inferred_input = taeda.ones(3)
    leaf = taeda.ones(3, requires_grad=True)
    compiled = capture(f, fullgraph=True)
    for x in (inferred_input, taeda.ones(3), leaf, leaf * 1, inferred_input, leaf):
        assert compiled(x) == f(x)
        with taeda.inference_mode():
            assert compiled(x) == f(x)
