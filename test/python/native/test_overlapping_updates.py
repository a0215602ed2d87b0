"""Updates in place refuse operands that share memory with what they write."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import taeda
import torch

INDEX = taeda.tensor([2, 1, 0])
CALLS = {
    "index_add_": lambda x, part: x.index_add_(0, INDEX, part),
    "index_copy_": lambda x, part: x.index_copy_(0, INDEX, part),
    "index_reduce_": lambda x, part: x.index_reduce_(0, INDEX, part, "amax"),
    "scatter_": lambda x, part: x.scatter_(0, INDEX, part),
    "scatter_add_": lambda x, part: x.scatter_add_(0, INDEX, part),
    "scatter_reduce_": lambda x, part: x.scatter_reduce_(0, INDEX, part, "sum"),
    "put_": lambda x, part: x.put_(INDEX, part),
    "index_put_": lambda x, part: x.index_put_((INDEX,), part),
    "setitem": lambda x, part: x.__setitem__(INDEX, part),
}


@pytest.mark.parametrize("name", CALLS)
def test_parts_of_itself_are_refused(name: str) -> None:
    x = taeda.arange(6.0)
    with pytest.raises(RuntimeError, match="unsupported operation: some elements"):
        CALLS[name](x, x[:3])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    # Another part of the same memory is no operand that changes meanwhile.
    CALLS[name](x[:3], x[3:])
    CALLS[name](x, x[:3].clone())


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"index_put_", "setitem"}))
def test_one_element_seen_often_is_refused(name: str) -> None:
    x = taeda.ones(1).expand(6)
    with pytest.raises(RuntimeError, match="unsupported operation: more than one"):
        CALLS[name](x, taeda.ones(3))


# Of `m`, the library, and `x`, an expanded tensor of 3 x 3 that is written.
EXPANDED = {
    "x.masked_fill_(m.eye(3).bool(), 9.0)": True,
    "x.masked_fill_(m.tensor([True, False, False]), m.tensor(9.0))": True,
    "x.index_fill_(0, m.tensor([1]), 9.0)": True,
    "x.index_fill_(1, m.tensor([0, 2]), m.tensor(9.0))": True,
    "x.index_put_((m.tensor([0, 2]),), m.tensor([5.0, 6.0, 7.0]))": True,
    "x.index_put_((m.tensor([0, 2]),), m.tensor([5.0, 6, 7]), accumulate=True)": True,
    "x.__setitem__(m.eye(3).bool(), m.tensor([1.0, 2.0, 3.0]))": True,
    "m.nn.functional.threshold_(x, 1.5, 8.0)": False,
}


@pytest.mark.parametrize("given", [[[1.0, 2.0, 3.0]], [[1.0], [2.0], [3.0]], [[4.0]]])
@pytest.mark.parametrize("text", EXPANDED)
def test_expanded_tensors_are_written_in_turn(text: str, given: list) -> None:
    seen = {}
    for m in (taeda, torch):
        x = m.tensor(given).expand(3, 3)
        with pytest.warns(UserWarning) if EXPANDED[text] else nullcontext() as found:
            eval(text, {"m": m, "x": x})
        told = [str(w.message) for w in found or ()]
        seen[m] = x.tolist(), all("on expanded tensors" in t for t in told)
    assert seen[taeda] == seen[torch]


def test_an_index_that_is_written_is_refused() -> None:
    index = taeda.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        index.index_add_(0, index, index.clone())
    with pytest.raises(RuntimeError, match="unsupported operation"):
        index.index_fill_(0, index, 0)
    assert index.tolist() == [2, 1, 0]


def test_masked_scatter_reads_a_copy() -> None:
    x = taeda.arange(4.0)
    assert x.masked_scatter_(x > 1, x[:]).tolist() == [0, 1, 0, 1]
    mask = taeda.tensor([True, False])
    assert mask.masked_scatter_(mask, mask).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "diagonal", "by_row", "by_column"),
    [
        ("tril_", 0, [1, 0, 0], [0, 0, 3]),
        ("tril_", -1, [0, 0, 0], [0, 0, 0]),
        ("triu_", 0, [0, 0, 3], [1, 0, 0]),
        ("triu_", -1, [0, 2, 3], [1, 2, 0]),
    ],
)
def test_triangles_of_expanded_tensors(name, diagonal, by_row, by_column):
    rows = taeda.tensor([1.0, 2.0, 3.0])
    getattr(rows.expand(3, 3), name)(diagonal)
    assert rows.tolist() == by_row
    columns = taeda.tensor([1.0, 2.0, 3.0])
    getattr(columns[:, None].expand(3, 3), name)(diagonal)
    assert columns.tolist() == by_column
