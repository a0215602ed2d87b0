"""Operators of control flow in captured graphs: numbers, sizes and refusals."""

from __future__ import annotations

import pytest
import taeda
from taeda._dynamo.exc import UncapturedHigherOrderOpError
from taeda._higher_order_ops import map as map_rows
from taeda._higher_order_ops import scan
from taeda.utils.checkpoint import checkpoint

ROWS = taeda.arange(6.0).view(2, 3)
WIDE = taeda.arange(20.0).view(5, 4)


def block(x):
    return (x.view(x.shape[1], x.shape[0]).t() * x.shape[1]).sin()


def of_number(x, n):
    return taeda.cond(x.sum() > 0, lambda x, n: x * n, lambda x, n: x - n, (x, n))


def of_size(x):
    def shaped(x, n):
        return x.reshape(-1, n) * n

    return taeda.cond(x.sum() > 0, shaped, lambda x, n: x - n, (x, x.shape[1]))


def with_constants(x):
    def first(x):
        return {"a": x.sin(), "b": 3, "c": None}

    return taeda.cond(
        x.sum() > 0, first, lambda x: {"a": x * 1, "b": 3, "c": None}, (x,)
    )


PROGRAMS = {
    "checkpoint": (lambda x: checkpoint(block, x, use_reentrant=False), (), ()),
    "number": (of_number, (3,), (4,)),
    "size": (of_size, (), ()),
    "constants": (with_constants, (), ()),
    "map": (lambda x: map_rows(lambda row, n: row + n, x, x.shape[1]), (), ()),
    "scan": (
        lambda x: scan(lambda c, r: (c + r, c * r), taeda.zeros(x.shape[1]), x)[1],
        *((), ()),
    ),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_and_sizes_in_pieces(name, dynamic, backend):
    program, first, later = PROGRAMS[name]
    compiled = taeda.compile(program, fullgraph=True, dynamic=dynamic, backend=backend)
    for x, rest in ((ROWS, first), (-ROWS, first), (WIDE, later), (-WIDE, later)):
        found, wanted = compiled(x, *rest), program(x, *rest)
        taeda.testing.assert_close(found, wanted)


def test_what_no_piece_holds_is_told_with_the_operator():
    seen = []

    def noting(x):
        seen.append(1)
        return x

    def program(x):
        return taeda.cond(x.sum() > 0, noting, lambda x: x + 1, (x,))

    with pytest.raises(
        UncapturedHigherOrderOpError, match=r"Higher Order Operator: torch\.cond"
    ) as refused:
        taeda.compile(program, fullgraph=True)(ROWS)
    assert refused.value.msg == str(refused.value)
    assert taeda.compile(program)(ROWS).tolist() == ROWS.tolist()


def test_branches_of_unlike_numbers():
    def program(x, one, other):
        return taeda.cond(
            x.sum() > 0, lambda x: (x, one), lambda x: (x + 1, other), (x,)
        )

    for one, other in ((3, 4), (0.0, -0.0), (1, True)):
        taeda._dynamo.reset()  # else a number that was another one is a symbol
        with pytest.raises(UncapturedHigherOrderOpError, match="unlike results"):
            taeda.compile(program, fullgraph=True)(ROWS, one, other)
