"""Objects whose dict has what a property of that name reads."""

from __future__ import annotations

import pytest
import taeda


class Bunch:
    """Its field can be read only, and lies in its dict under the same name."""

    def __init__(self, field) -> None:
        self.__dict__["field"] = field

    field = property(lambda self: self.__dict__["field"])


class Kept:
    """A descriptor of a program's own that refuses what is written."""

    def __get__(self, instance, kind=None):
        return vars(instance)["kept"] * 2

    def __set__(self, instance, value):
        raise AttributeError("kept")


class Keeps:
    kept = Kept()


def whole(function):
    taeda.compiler.reset()
    return taeda.compile(function, fullgraph=True, backend="eager")


def test_one_that_is_made_inside() -> None:
    def make(x):
        found = Bunch(x * 2)
        return x + found.field, found

    x = taeda.ones(2)
    total, found = whole(make)(x)
    assert total.tolist() == [3, 3]
    assert type(found) is Bunch and found.field.tolist() == [2, 2]
    with pytest.raises(AttributeError):
        found.field = 1


def test_one_from_outside_is_read_and_written() -> None:
    bunch, keeps = Bunch(3), Keeps()
    vars(keeps)["kept"] = 5

    def change(x):
        bunch.__dict__["field"] += 1
        vars(keeps)["kept"] = bunch.field + keeps.kept
        return x * bunch.field

    compiled = whole(change)
    assert compiled(taeda.ones(2)).tolist() == [4, 4]
    assert (bunch.field, keeps.kept) == (4, 28)
    assert compiled(taeda.ones(2)).tolist() == [5, 5]
    assert (bunch.field, keeps.kept) == (5, 66)

    def drop(x):
        del bunch.__dict__["field"]
        return x + 1

    assert whole(drop)(taeda.ones(1)).tolist() == [2]
    assert "field" not in vars(bunch)
