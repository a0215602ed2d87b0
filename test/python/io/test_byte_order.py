"""The byte order of files that do not say theirs."""

from __future__ import annotations

import io

import pytest
import taeda
from taeda.serialization import (
    LoadEndianness,
    get_default_load_endianness,
    set_default_load_endianness,
)


@pytest.fixture(autouse=True)
def _restored():
    before = get_default_load_endianness()
    yield
    set_default_load_endianness(before)


def _file_without_mark(values: taeda.Tensor) -> io.BytesIO:
    file = io.BytesIO()
    taeda.save(values, file, _disable_byteorder_record=True)
    file.seek(0)
    return file


def test_the_order_that_was_set_is_the_one_told() -> None:
    for order in (*LoadEndianness, None):
        set_default_load_endianness(order)
        assert get_default_load_endianness() is order
    assert LoadEndianness is taeda.serialization.LoadEndianness


def test_files_without_a_mark_are_read_in_that_order() -> None:
    values = taeda.tensor([1, 256, -2], dtype=taeda.int16)
    set_default_load_endianness(LoadEndianness.LITTLE)
    assert taeda.load(_file_without_mark(values)).tolist() == [1, 256, -2]
    set_default_load_endianness(LoadEndianness.BIG)
    assert taeda.load(_file_without_mark(values)).tolist() == [256, 1, -257]
