"""Traces of operators, memory over time, pauses, and files of nvprof."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3

import pytest
import taeda
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
OBSERVERS = [t.profiler.ExecutionTraceObserver for t in (taeda, torch)]


def nodes_of(path) -> list[dict]:
    return json.loads(path.read_text())["nodes"]


def facts_of(library, path) -> tuple[dict, dict]:
    """The keys of the file and of the node of a product."""
    observer = library.profiler.ExecutionTraceObserver()
    observer.register_callback(str(path))
    x, y = library.ones(2, 3), library.ones(3, 4)
    observer.start()
    library.mm(x, y)
    observer.stop()
    observer.unregister_callback()
    trace = json.loads(path.read_text())
    return trace, next(n for n in trace["nodes"] if n["name"] == "aten::mm")


def test_nodes_are_those_of_the_reference(tmp_path) -> None:
    (ours, mine), (real, its) = (
        facts_of(t, tmp_path / f"{t.__name__}.json") for t in (taeda, torch)
    )
    assert ours.keys() == real.keys() and ours["schema"] == real["schema"]
    assert mine.keys() == its.keys()
    assert [a["name"] for a in mine["attrs"]] == [a["name"] for a in its["attrs"]]
    for side in ("inputs", "outputs"):
        for key in ("shapes", "types", "strides"):
            assert mine[side][key] == its[side][key]
        for got, want in zip(mine[side]["values"], its[side]["values"], strict=True):
            assert got[2:] == want[2:]


def test_tensors_keep_their_numbers_through_a_backward_pass(tmp_path) -> None:
    path = tmp_path / "trace.json"
    observer = taeda.profiler.ExecutionTraceObserver()
    observer.register_callback(str(path)).start()
    x = taeda.ones(2, 3, requires_grad=True)
    (x @ x.T).sum().backward()
    assert observer.is_registered and observer.is_running()
    observer.cleanup()
    assert not observer.is_registered and not observer.is_running()
    nodes = nodes_of(path)
    assert [n["name"] for n in nodes].count("aten::mm") == 3
    first, product = (
        next(n for n in nodes if n["name"] == name)
        for name in ("aten::ones", "aten::mm")
    )
    assert product["inputs"]["values"][0] == first["outputs"]["values"][0]
    assert len({n["id"] for n in nodes}) == len(nodes)


def test_without_a_file_nothing_starts(tmp_path, monkeypatch) -> None:
    observer = taeda.profiler.ExecutionTraceObserver()
    observer.start()
    assert not observer.is_running() and observer.get_output_file_path() is None
    for kind in OBSERVERS:
        folder = tmp_path / kind.__module__.partition(".")[0]
        folder.mkdir()
        find = kind.get_resources_dir_for_et_path
        assert find(str(folder / "a.json")) is None
        made = find(str(folder / "a.json"), create_dir=True)
        assert made == str(folder / "a_resources") and os.path.isdir(made)
        assert find(str(folder / "none" / "a.json")) is None
    build = taeda.profiler.ExecutionTraceObserver.build_execution_trace_obs_from_env
    assert build() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    made = build()
    assert made.is_registered and made.get_output_file_path().endswith(".et.json")


def test_modes_that_stay_are_named(tmp_path) -> None:
    from taeda.utils._python_dispatch import BaseTorchDispatchMode

    observer = taeda.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "a.json")).start()
    with BaseTorchDispatchMode(), pytest.raises(RuntimeError, match="dispatch modes"):
        observer.stop()
    observer.stop()


def test_a_profile_drives_it_and_pauses(tmp_path) -> None:
    path = tmp_path / "trace.json"
    observer = taeda.profiler.ExecutionTraceObserver()
    observer.register_callback(str(path))
    cpu = [taeda.profiler.ProfilerActivity.CPU]
    with taeda.profiler.profile(
        execution_trace_observer=observer, profile_memory=True
    ) as prof:
        x = taeda.ones(300)
        prof.toggle_collection_dynamic(False, cpu)
        taeda.exp(x)
        prof.toggle_collection_dynamic(True, cpu)
        taeda.sin(x)
    names = [event.name for event in prof.events()]
    assert "aten::sin" in names and "aten::exp" not in names
    assert [n["name"] for n in nodes_of(path)[2:]] == [
        "aten::ones",
        "aten::exp",
        "aten::sin",
    ]
    assert not observer.is_registered
    with pytest.raises(RuntimeError, match="outside of the block"):
        prof.toggle_collection_dynamic(True, cpu)


def test_memory_over_time(tmp_path) -> None:
    with taeda.profiler.profile(profile_memory=True) as prof:
        x = taeda.ones(1000)
        del x
    page, plain, packed, raw = (
        str(tmp_path / n) for n in ("a.html", "a.json", "a.json.gz", "raw.json.gz")
    )
    for path in (page, plain, packed, raw):
        prof.export_memory_timeline(path)
    times, sizes = json.loads(open(plain).read())
    assert [4000] in sizes and sizes[-1] == [0] and times == sorted(times)
    assert json.loads(gzip.open(packed).read()) == [times, sizes]
    actions = [row[1:3] for row in json.loads(gzip.open(raw).read())]
    assert [0, 4000] in actions and [3, -4000] in actions
    assert "<html" in open(page).read(200).lower()
    with pytest.raises(NotImplementedError, match="cuda"):
        prof.export_memory_timeline(plain, device="cuda")
    with taeda.profiler.profile() as prof:
        taeda.ones(1)
    with pytest.raises(RuntimeError, match="profile_memory"):
        prof.export_memory_timeline(plain)


def test_files_of_nvprof(tmp_path) -> None:
    path = tmp_path / "nvprof.db"
    tables = {
        "StringTable(_id_, value)": [(1, "aten::add"), (2, "aten::mm"), (3, "kernel")],
        "CUPTI_ACTIVITY_KIND_MARKER(_id_, id, name, timestamp)": [
            (1, 10, 1, 1000),
            (2, 11, 2, 3000),
            (3, 11, 0, 9000),
            (4, 10, 0, 2000),
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME(_id_, cbid, start, end, correlationId)": [
            (1, 211, 1500, 1600, 77),
            (2, 211, 3500, 3600, 78),
            (3, 13, 100, 200, 79),
        ],
        "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
        "(_id_, start, end, correlationId, name)": [
            (1, 5000, 7000, 77, 3),
            (2, 7000, 7500, 78, 3),
        ],
    }
    with sqlite3.connect(path) as file:
        for table, rows in tables.items():
            file.execute(f"CREATE TABLE {table}")
            marks = ", ".join("?" * len(rows[0]))
            name = table.partition("(")[0]
            file.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    ours, real = (
        t.autograd.profiler.parse_nvprof_trace(str(path)) for t in (taeda, torch)
    )
    facts = [
        [
            (e.id, e.name, e.thread, e.time_range.start, e.time_range.end)
            + tuple(k.duration for k in e.kernels)
            for e in events
        ]
        for events in (ours, real)
    ]
    assert facts[0] == facts[1] and len(facts[0]) == 2
    assert len(taeda.autograd.profiler.load_nvprof(str(path))) == 2
