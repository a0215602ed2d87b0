"""Objects of all ranks, where one rank's failure is everybody's."""

from __future__ import annotations

import pytest
from ranks import run
from taeda.distributed import collective_utils


def test_ranks_fail_together(tmp_path):
    first, second = run(tmp_path, "synchronised", 2)
    assert (
        first[:4]
        == second[:4]
        == [
            "[0, 10]",
            "6",
            "RuntimeError KeyError: all_gather: rank 1 failed: 'no id'",
            "RuntimeError KeyError: broadcast: rank 0 failed at stage ids: 'no id'",
        ]
    )
    late = "RuntimeError NoneType: all_gather: rank {} is at stage stage {}, not at "
    assert first[4] == late.format(1, 1) + "stage 0"
    assert second[4] == late.format(0, 0) + "stage 1"
    assert first[5] == second[5]
    assert first[5].startswith("TypeError NoneType: Object type at index 0 is <class")


def test_without_a_group_it_is_this_rank_alone():
    assert collective_utils.all_gather(lambda: 3) == [3]
    assert collective_utils.broadcast("x") == "x"
    assert collective_utils.broadcast("x", rank=1) is None
    with pytest.raises(RuntimeError, match="rank 0 failed: division") as raised:
        collective_utils.broadcast(lambda: 1 / 0)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(RuntimeError, match="broadcast: rank 0 failed$"):
        collective_utils.broadcast(None, success=False)
    with pytest.raises(AssertionError, match="data although success is False"):
        collective_utils.broadcast(1, success=False)
