"""Neighbouring elements combined by segments, against PyTorch's."""

from __future__ import annotations

import pytest
import taeda
import torch

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "amax", "amin")
ROWS = [[1.0, 2.0], [2.0, 0.0], [2.0, 5.0], [0.0, 0.0], [-1.0, 3.0]]
# The segments, in each way of giving them.
SEGMENTS = [
    {"lengths": [2, 0, 3]},
    {"lengths": [1, 1, 1], "unsafe": True},
    {"offsets": [0, 2, 2, 5]},
    {"offsets": [1, 3, 4]},
]


def both(program):
    return [program(lib) for lib in (taeda, torch)]


def segments(lib, given: dict, dtype: str = "int64") -> dict:
    kind = getattr(lib, dtype)
    return {
        k: v if isinstance(v, bool) else lib.tensor(v, dtype=kind)
        for k, v in given.items()
    }


def lists(t) -> str:
    """As text, in which NaN is NaN."""
    return str([t.dtype.itemsize, [[round(v, 4) for v in row] for row in t.tolist()]])


@pytest.mark.parametrize("given", SEGMENTS)
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("initial", [None, 2])
def test_values_and_gradients(reduce, given, initial):
    def program(lib):
        x = lib.tensor(ROWS, requires_grad=True)
        out = lib.segment_reduce(x, reduce, **segments(lib, given), initial=initial)
        way = lib.arange(1.0, 1.0 + out.numel()).reshape(out.shape)
        (slope,) = lib.autograd.grad(out, x, way)
        return lists(out), lists(slope)

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_rows_of_their_own_segments(reduce, dtype):
    def program(lib):
        x = lib.tensor([[1.0, 2.0, 2.0], [3.0, 4.0, 3.0]], dtype=getattr(lib, dtype))
        rows = lib.tensor([[2, 0, 1], [1, 1, 1]], dtype=lib.int32)
        return lists(lib.segment_reduce(x, reduce, lengths=rows, axis=1))

    ours, theirs = both(program)
    assert ours == theirs


def test_nan_is_the_largest_and_the_smallest():
    def program(lib):
        x = lib.tensor([[1.0], [float("nan")], [3.0]], requires_grad=True)
        kept = []
        for reduce in ("max", "min"):
            out = lib.segment_reduce(x, reduce, lengths=lib.tensor([2, 1]))
            kept += [lists(out), lists(lib.autograd.grad(out.sum(), x)[0])]
        return kept

    ours, theirs = both(program)
    assert ours == theirs


@pytest.mark.parametrize("reduce", REDUCTIONS[:5])
def test_second_derivatives_and_transforms(reduce):
    taeda.manual_seed(0)
    x = taeda.rand(2, 5, 2, dtype=taeda.float64) + 0.5
    lengths = taeda.tensor([2, 0, 3])

    def program(t):
        return taeda.segment_reduce(t, reduce, lengths=lengths, initial=0.75)

    assert taeda.autograd.gradcheck(program, x[0].clone().requires_grad_())
    assert taeda.autograd.gradgradcheck(program, x[0].clone().requires_grad_())
    one_by_one = taeda.stack([program(t) for t in x])
    assert taeda.allclose(taeda.func.vmap(program)(x), one_by_one)
    _, moved = taeda.func.jvp(program, (x[0],), (taeda.ones_like(x[0]),))
    slopes = taeda.func.jacrev(program)(x[0])
    assert taeda.allclose(moved, slopes.sum((-2, -1)))


def test_meta_and_out():
    lengths = taeda.tensor([2, 1], device="meta")
    x = taeda.ones(3, 4, device="meta")
    assert taeda.segment_reduce(x, "sum", lengths=lengths).shape == (2, 4)
    out = taeda.empty(0)
    lengths = taeda.tensor([2, 1])
    taeda.ops.aten.segment_reduce.out(taeda.ones(3), "sum", lengths=lengths, out=out)
    assert out.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda T, x: T.segment_reduce(x, "sum"), "lengths or offsets"),
        (lambda T, x: T.segment_reduce(x, "s", lengths=T.tensor([3])), "got s"),
        (lambda T, x: T.segment_reduce(x, "sum", lengths=T.tensor([2])), "unsafe"),
        (
            lambda T, x: T.segment_reduce(x, "sum", lengths=T.tensor([4, -1])),
            "negative",
        ),
        (lambda T, x: T.segment_reduce(x, "sum", indices=T.tensor([0])), "indices"),
        (
            lambda T, x: T.segment_reduce(
                x[None], "sum", lengths=T.tensor([3]), axis=1
            ),
            "Expected axis",
        ),
    ],
)
def test_refusals_are_those_of_pytorch(program, text):
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError, match=text):
            program(lib, lib.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(NotImplementedError):
        taeda.segment_reduce(taeda.tensor([1, 2]), "sum", lengths=taeda.tensor([2]))


def test_segments_outside_of_data_are_refused():
    """PyTorch reads past the end of its memory."""
    x = taeda.ones(3)
    with pytest.raises(RuntimeError, match="not within data"):
        taeda.segment_reduce(x, "sum", offsets=taeda.tensor([0, 2, 5]))
    with pytest.raises(RuntimeError, match="not within data"):
        taeda.segment_reduce(x, "sum", lengths=taeda.tensor([4]), unsafe=True)
    backward = taeda.ops.aten._segment_reduce_backward
    with pytest.raises(RuntimeError, match="lengths or offsets must be defined"):
        backward(x, x, x, "mean", lengths=None, offsets=None, axis=0, initial=None)
