"""Who looks at the interpreter's frames from a call that ended a graph."""

from __future__ import annotations

import logging
import sys
import traceback
import typing
import warnings

import pytest
import taeda


def where(depth: int = 1):
    frame = sys._getframe(depth)
    return frame.f_code.co_name, frame.f_lineno, frame.f_globals is globals()


def inner(x):
    return where(), where(2), x + 1


def looks(x):
    y = x * 2
    here = sys._getframe().f_lineno, sys._getframe().f_code.co_qualname
    return here, inner(y), [f.name for f in traceback.extract_stack()[-2:]]


def warns(x):
    y = x * 2
    warnings.warn("first", stacklevel=1)
    if y.sum() > 0:
        helper(y)
    return y


def helper(y):
    warnings.warn("second", UserWarning, stacklevel=2)
    logging.getLogger(__name__).warning("third")
    return y


def raises(x):
    y = x * 2
    return fails(y)


@taeda.compiler.disable
def fails(y):
    raise KeyError("k")


def test_frames_are_those_of_the_function() -> None:
    x, compiled = taeda.ones(2), taeda.compile(looks)
    here, (near, far, _), names = looks(x)
    for _ in range(2):
        found, (one, two, _), seen = compiled(x)
        assert found == here and one == near and two == far and seen == names


def test_warnings_and_logs_name_the_line(caplog) -> None:
    def told(function):
        caplog.clear()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            function(taeda.ones(2))
        records = [(r.filename, r.lineno, r.funcName) for r in caplog.records]
        return [(str(w.message), w.filename, w.lineno) for w in found], records

    wanted = told(warns)
    assert len(wanted[0]) == 2 and len(wanted[1]) == 1
    compiled = taeda.compile(warns)
    assert told(compiled) == wanted == told(compiled)


def test_tracebacks_have_each_frame_once() -> None:
    def names(function):
        with pytest.raises(KeyError) as caught:
            function(taeda.ones(2))
        found = traceback.extract_tb(caught.value.__traceback__)
        return [(f.name, f.lineno) for f in found if f.filename == __file__]

    wanted = names(raises)[1:]
    compiled = taeda.compile(raises)
    for _ in range(2):
        assert names(compiled)[-len(wanted) :] == wanted
        assert [n for n, _ in names(compiled)].count("raises") == 1


def test_types_that_are_made_inside_end_no_graph() -> None:
    class Kind:
        pass

    def function(x):
        def inner(y: typing.List[Kind]):  # noqa: UP006
            return x + 1

        return inner(x)

    compiled = taeda.compile(function, fullgraph=True)
    assert compiled(taeda.ones(2)).tolist() == [2, 2]
