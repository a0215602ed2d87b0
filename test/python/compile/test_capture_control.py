"""Operators of control flow, eagerly and in captured functions."""

from __future__ import annotations

import pytest
import taeda
from taeda._higher_order_ops import associative_scan, map, scan, while_loop
from taeda.compiler._frames import capture

weight = taeda.tensor([1.0, 2.0, 3.0], requires_grad=True)


def x3(sign=1.0):
    return taeda.tensor([0.5, -0.25, 2.0]) * sign


def conditional(x):
    y = x * 2
    return taeda.cond(y.sum() > 0, lambda v: v.sin() * weight, lambda v: v + y, (x,))


def conditional_several(x):
    def yes(v):
        return {"a": v + 1, "b": (v * 2, v)}

    def no(v):
        return {"a": v - 1, "b": (v.cos(), v * weight.detach())}

    found = taeda.cond(x.sum() > 0, yes, no, (x,))
    return found["a"] + found["b"][0] * found["b"][1]


def nested(x):
    def inner(v):
        return taeda.cond(v.max() > 1, lambda w: w * weight, lambda w: w - 1, (v,))

    return taeda.cond(x.sum() > 0, inner, lambda v: v.exp(), (x * 1,))


def looped(x):
    def more(i, v):
        return (i < 3) & (v.sum() < 100)

    def body(i, v):
        return i + 1, v * weight.detach() + x

    return while_loop(more, body, (taeda.tensor(0), x))[1]


def scanned(x):
    rows = taeda.stack([x, x + 1, x * 2])

    def step(carry, row):
        return carry + row * weight, {"y": carry * row}

    last, found = scan(step, taeda.zeros(3), rows)
    back = scan(lambda c, r: (c * r, c), taeda.ones(3), rows, dim=1, reverse=True)
    return last + found["y"].sum(0) + back[0] + back[1].sum()


def mapped(x):
    rows = taeda.stack([x, x + 1])
    found = map(lambda r, k: (r * weight + k, r.sum()), rows, x)
    return found[0].sum(0) + found[1].sum()


def combined(x):
    rows = taeda.stack([x, x + 1, x * 2])
    forward = associative_scan(taeda.add, rows, 0, combine_mode="generic")
    return forward.sum(0) + associative_scan(
        lambda a, b: a * b, rows, 0, reverse=True, combine_mode="generic"
    ).sum(0)


PROGRAMS = [conditional, conditional_several, nested, looped, scanned, mapped, combined]


def run(function, x):
    x = x.requires_grad_()
    weight.grad = None
    out = function(x)
    if out.requires_grad:
        (out * out).sum().backward()
    return out.detach(), x.grad, weight.grad


@pytest.mark.parametrize("with_module", [False, True])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_graph_holds_all_ways(function, with_module, same):
    backend = (lambda gm, inputs: gm.forward) if with_module else None
    compiled = capture(function, fullgraph=True, backend=backend)
    for sign in (1.0, -1.0, 1.0):
        same(run(compiled, x3(sign)), run(function, x3(sign)))
    assert compiled.explain()["graphs"] == 1


def test_a_constant_chooses_when_the_graph_is_captured(same):
    def program(x, flag):
        return taeda.cond(flag, lambda v: v + 1, lambda v: v[:2], (x,))

    compiled = capture(program, fullgraph=True)
    for flag in (True, False):
        same(compiled(x3(), flag), program(x3(), flag))


@pytest.mark.parametrize("name", ["shapes", "dtypes", "structures", "effects"])
def test_branches_that_no_graph_holds_run_as_they_are(name, same):
    seen = []

    def logging(v):
        seen.append(1)
        return v * 1

    branches = {
        "shapes": (lambda v: v + 1, lambda v: v[:2]),
        "dtypes": (lambda v: v + 1, lambda v: v.double()),
        "structures": (lambda v: v + 1, lambda v: (v, v)),
        "effects": (logging, lambda v: v + 2),
    }[name]

    def program(x):
        return taeda.cond(x.sum() > 0, *branches, (x,))

    compiled = capture(program)
    for sign in (1.0, -1.0):
        same(compiled(x3(sign)), program(x3(sign)))
    assert len(seen) == (2 if name == "effects" else 0)
    with pytest.raises(Exception, match="cond|side effects"):
        capture(program, fullgraph=True)(x3())


# The messages of PyTorch 2.13.
REFUSED = [
    (lambda x: taeda.cond("a", taeda.sin, taeda.cos, (x,)), "Expected pred to be bool"),
    (
        lambda x: taeda.cond(x > 0, taeda.sin, taeda.cos, (x,)),
        "Expected pred to be bool or single-element tensor",
    ),
    (
        lambda x: taeda.cond(x.sum() > 0, 3, taeda.cos, (x,)),
        "Expect both branches to be callable",
    ),
    (
        lambda x: taeda.cond(x.sum() > 0, taeda.sin, taeda.cos, x),
        "Expect operands to be a tuple",
    ),
    (
        lambda x: while_loop(3, lambda v: (v,), (x,)),
        "Expect cond_fn and body_fn to be callable",
    ),
    (
        lambda x: while_loop(lambda v: v, lambda v: (v,), (x,)),
        "cond_fn must return a boolean scalar tensor",
    ),
    (lambda x: scan(3, x, x), "Combine_fn must be a callable"),
    (lambda x: scan(lambda c, v: (c, c), [], x), "requires init leaves"),
    (lambda x: scan(taeda.add, x, x, reverse=3), "Reverse must be a bool"),
    (lambda x: map(taeda.sin, 3), "Mapped xs can only consist of tensors"),
    (
        lambda x: map(lambda v: v[0], [x, x[:2]]),
        "Leading dimensions of mapped xs must be consistent",
    ),
]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize(("program", "words"), REFUSED)
def test_wrong_arguments_are_refused(program, words, captured):
    with pytest.raises(RuntimeError, match=words):
        (capture(program) if captured else program)(x3())


def test_eager_forms_return_what_pytorchs_do():
    rows = taeda.arange(6.0).view(3, 2)
    last, found = scan(lambda c, y: (c + y, c * y), taeda.zeros(2), rows, reverse=True)
    assert last.tolist() == [6.0, 9.0]
    assert found.tolist() == [[0.0, 8.0], [8.0, 15.0], [0.0, 0.0]]
    assert scan(lambda c, y: (c, y), taeda.zeros(2), [])[1] == []
    assert map(lambda a, b: a * b, rows, taeda.tensor(2.0)).tolist()[2] == [8.0, 10.0]
    assert while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,)) == (3,)
    assert taeda.cond(3, lambda v: v + 1, lambda v: v, (taeda.ones(1),)).item() == 2.0


@pytest.mark.parametrize("with_module", [False, True])
def test_flex_attention_is_one_call_with_its_functions(with_module, same):
    from taeda.nn.attention.flex_attention import create_block_mask, flex_attention

    slope = taeda.tensor(0.5)

    def causal(b, h, i, j):
        return i >= j

    kept = create_block_mask(causal, None, None, 8, 8)

    def program(q, scale):
        made = create_block_mask(causal, None, None, 8, 8)
        score = flex_attention(q, q, q, lambda s, b, h, i, j: s + (i - j) * slope)
        masked = flex_attention(q, q, q, block_mask=kept, scale=scale)
        return score + masked + flex_attention(q, q, q, block_mask=made)

    backend = (lambda gm, inputs: gm.forward) if with_module else None
    compiled = capture(program, fullgraph=True, backend=backend)
    q = taeda.randn(1, 2, 8, 4)
    for scale in (0.5, 0.5, 2.0):
        same(compiled(q, scale), program(q, scale))
    assert compiled.explain()["graphs"] == 2


def appends(x):
    seen = [0]

    def body(v):
        seen.append(1)
        return (v + 1,)

    return while_loop(lambda v: v.sum() < 9, body, (x,)), seen


def appends_in_a_branch(x):
    seen = {}

    def yes(v):
        seen["yes"] = 1
        return v + 1

    def no(v):
        seen["no"] = 1
        return v - 1

    return taeda.cond(x.sum() > 0, yes, no, (x,)), seen


def counts(x):
    n = 0

    def step(carry, row):
        nonlocal n
        n += 1
        return carry + row, carry

    return scan(step, x, taeda.stack([x, x])), n


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, carry, row):
        self.n += 1
        return carry + row, carry


def counts_on_an_object(x):
    counter = Counter()
    return scan(lambda c, r: counter(c, r), x, taeda.stack([x, x])), counter.n


EFFECTS = [appends, appends_in_a_branch, counts, counts_on_an_object]


@pytest.mark.parametrize("function", EFFECTS, ids=lambda f: f.__name__)
def test_effects_of_bodies_on_what_is_made_inside(function, same) -> None:
    for sign in (1.0, -1.0):
        same(capture(function)(x3(sign)), function(x3(sign)))


def test_a_body_may_write_a_variable_that_nobody_has_read(same) -> None:
    def made():
        kept = x3()

        def inner(x):
            nonlocal kept
            kept = x
            return x.clone()

        return lambda x: taeda._higher_order_ops.wrap(inner, x), lambda: kept

    function, kept = made()
    x = x3(2.0)
    same(capture(function)(x), x)
    assert kept() is x
