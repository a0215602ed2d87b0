"""taeda.futures: errors of callbacks, and what is refused."""

from __future__ import annotations

import pickle

import pytest
import taeda
from taeda.futures import Future, collect_all, wait_all


def fails(future: Future) -> None:
    raise ValueError("on purpose")


def test_an_error_that_was_set_is_raised() -> None:
    future: Future = Future()
    future.set_exception(ValueError("set"))
    for read in (future.wait, future.value):
        with pytest.raises(ValueError, match="set"):
            read()


def test_errors_of_callbacks_name_themselves() -> None:
    future: Future = Future()
    following = future.then(fails)
    future.add_done_callback(fails)
    future.set_result(3)
    assert future.wait() == 3
    with pytest.raises(RuntimeError, match="callback: ValueError: on purpose"):
        following.wait()
    with pytest.raises(RuntimeError, match="on purpose"):
        wait_all([future, following])


def test_a_future_is_completed_once() -> None:
    future: Future = Future()
    future.set_result(1)
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(2)
    assert future.wait() == 1


def test_what_is_no_future_is_refused() -> None:
    for call in (wait_all, collect_all):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            call([Future(), None])
    with pytest.raises(RuntimeError, match="Future can't be None"):
        taeda.jit.wait(None)


def test_futures_cannot_be_pickled() -> None:
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(Future())
