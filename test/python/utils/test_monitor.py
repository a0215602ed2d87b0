"""Events and statistics, beside PyTorch's."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
import taeda
import torch.monitor
from taeda import monitor

HOUR = timedelta(hours=1)
KINDS = ("MEAN", "COUNT", "SUM", "MAX", "MIN")


@pytest.fixture(params=[monitor, torch.monitor], ids=["ours", "theirs"])
def library(request):
    return request.param


@pytest.fixture
def events(library):
    seen: list = []
    handle = library.register_event_handler(seen.append)
    yield seen
    library.unregister_event_handler(handle)


def test_handlers_get_events(library, events):
    at = datetime(2026, 1, 2, 3, 4, 5, 678901)
    library.log_event(library.Event("a.b", at, {"x": 1, "y": 2.5, "s": "t", "b": True}))
    (event,) = events
    assert (event.name, event.timestamp) == ("a.b", at)
    assert event.data == {"x": 1, "y": 2.5, "s": "t", "b": True}


@pytest.mark.parametrize("given", [(1, {}), ("a", {"x": [1]}), ("a", {1: 1}), ("a", 3)])
def test_events_of_other_types(library, given):
    with pytest.raises(TypeError):
        library.Event(given[0], datetime.now(), given[1])


def test_what_handlers_raise_comes_out(library):
    def fail(event):
        raise KeyError(event.name)

    handle = library.register_event_handler(fail)
    with pytest.raises(KeyError, match="x"):
        library.log_event(library.Event("x", datetime.now(), {}))
    library.unregister_event_handler(handle)
    library.log_event(library.Event("x", datetime.now(), {}))


def test_a_window_of_few_samples(library, events):
    kinds = [getattr(library.Aggregation, k) for k in KINDS]
    stat = library.Stat("loss", kinds, HOUR, 2)
    assert stat.name == "loss" and stat.count == 0
    assert stat.get() == dict.fromkeys(kinds, 0.0)
    stat.add(1)
    assert stat.count == 1 and events == []
    stat.add(5.0)
    expected = dict(zip(kinds, (3.0, 2.0, 6.0, 5.0, 1.0), strict=True))
    assert stat.count == 0 and stat.get() == expected
    (event,) = events
    assert event.name == "torch.monitor.Stat"
    assert event.data == {
        f"loss.{k.lower()}": v for k, v in zip(KINDS, expected.values(), strict=True)
    }
    stat.add(7)  # the window has its samples
    assert stat.count == 0 and len(events) == 1
    del stat
    assert len(events) == 1


def test_a_window_of_time(library, events):
    stat = library.Stat("n", [library.Aggregation.COUNT], timedelta(milliseconds=40))
    for _ in range(3):
        stat.add(1)
    time.sleep(0.1)
    stat.add(1)
    assert events and sum(e.data["n.count"] for e in events) == 3
    del stat
    assert sum(e.data["n.count"] for e in events) == 4


def test_the_last_value():
    stat = monitor.Stat("n", [monitor.Aggregation.VALUE], HOUR, 2)
    stat.add(3)
    stat.add(2)
    assert stat.get() == {monitor.Aggregation.VALUE: 2.0}


def test_names_are_pytorchs(library):
    kinds = library.Aggregation.__members__
    assert {n: int(k) for n, k in kinds.items()} == {
        n: int(k) for n, k in torch.monitor.Aggregation.__members__.items()
    }
    assert repr(kinds["MEAN"]) == "<Aggregation.MEAN: 2>"
    assert library.MEAN is kinds["MEAN"] or library.MEAN == kinds["MEAN"]
    for name in monitor.__all__:
        assert hasattr(torch.monitor, name)


def test_statistics_are_written_as_scalars():
    class Writer:
        found: list = []

        def add_scalar(self, name, value, walltime):
            self.found.append((name, value, walltime))

    handle = taeda.monitor.register_event_handler(
        monitor.TensorboardEventHandler(Writer())
    )
    monitor.log_event(monitor.Event("other", datetime.now(), {"x": 1}))
    stat = monitor.Stat("x", [monitor.Aggregation.SUM], HOUR, 1)
    stat.add(2)
    monitor.unregister_event_handler(handle)
    ((name, value, _),) = Writer.found
    assert (name, value) == ("x.sum", 2.0)
    with pytest.raises(ValueError, match="not registered"):
        monitor.unregister_event_handler(handle)
    with pytest.raises(TypeError, match="cannot be called"):
        monitor.register_event_handler(3)
