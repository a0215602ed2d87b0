"""`tensor` and `as_tensor` of storages: the memory seen as a dtype."""

from __future__ import annotations

import pytest
import taeda


@pytest.mark.parametrize("make", [taeda.tensor, taeda.as_tensor])
def test_bytes_are_seen_as_the_dtype(make) -> None:
    x = taeda.tensor([1.5, -2.0])
    seen = make(x.untyped_storage(), dtype=taeda.float32)
    assert seen.dtype == taeda.float32 and seen.tolist() == [1.5, -2.0]
    halves = make(x.untyped_storage(), dtype=taeda.int16)
    assert halves.tolist() == x.view(taeda.int16).tolist()


def test_typed_storages_have_their_dtype() -> None:
    x = taeda.tensor([3, 4])
    assert taeda.tensor(x.storage(), dtype=taeda.int64).tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        taeda.tensor(x.storage(), dtype=taeda.float32)
    assert x.storage()._cdata == x.untyped_storage()._cdata
