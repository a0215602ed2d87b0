"""Updates in place refuse operands that share memory with what they write."""

from __future__ import annotations

import pytest
import taeda

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


@pytest.mark.parametrize("name", CALLS)
def test_one_element_seen_often_is_refused(name: str) -> None:
    x = taeda.ones(1).expand(6)
    with pytest.raises(RuntimeError, match="unsupported operation: more than one"):
        CALLS[name](x, taeda.ones(3))


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
