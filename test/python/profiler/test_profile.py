"""Schedules, tables, memory, stacks, files."""

from __future__ import annotations

import gzip
import json
import re

import pytest
import taeda
import torch
from taeda.profiler import ProfilerAction, profile, record_function, schedule

from .test_events import perceptron, recorded


def cycles(L, plan, steps) -> list:
    """What is handed over after which steps, by names of steps in it."""
    out = []

    def ready(prof) -> None:
        names = [e.name for e in prof.events() if e.name.startswith("ProfilerStep")]
        out.append((prof.step_num, names))

    with L.profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(steps):
            L.ones(2)
            prof.step()
    return out


@pytest.mark.parametrize("wait", [0, 1])
@pytest.mark.parametrize("warmup", [0, 2])
@pytest.mark.parametrize("active", [1, 3])
@pytest.mark.parametrize("repeat", [0, 1])
@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
def test_cycles_are_those_of_pytorch(wait, warmup, active, repeat) -> None:
    found = []
    for L in (taeda, torch):
        plan = L.profiler.schedule(
            wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=1
        )
        found.append(cycles(L, plan, 9))
    assert found[0] == found[1]
    assert found[0]


def test_schedules_that_make_no_sense_warn() -> None:
    actions = [ProfilerAction.RECORD, ProfilerAction.NONE]
    prof = profile(schedule=lambda step: actions[min(step, 1)])
    prof.start()
    with pytest.warns(UserWarning, match="RECORD followed by NONE"):
        prof.step()
    prof.stop()
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=0, active=0)


def columns(text: str) -> list[str]:
    return re.split(r"\s{2,}", text.splitlines()[1].strip())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"profile_memory": True},
        {"with_flops": True, "record_shapes": True},
        {"profile_memory": True, "record_shapes": True},
    ],
)
@pytest.mark.parametrize("by_shape", [False, True])
def test_tables_have_pytorchs_columns_and_widths(options, by_shape) -> None:
    shown = []
    for L in (taeda, torch):
        prof = recorded(L, perceptron(L), **options)
        averages = prof.key_averages(group_by_input_shape=by_shape)
        text = averages.table(
            sort_by="cpu_time_total", row_limit=3, max_name_column_width=30
        )
        assert len(text.splitlines()) == 8
        shown.append((columns(text), len(text.splitlines()[0])))
    if "record_shapes" in options and by_shape:  # as wide as the widest
        shown = [names for names, _ in shown]
    if "with_flops" in options:  # in units of the smallest
        shown = json.loads(re.sub(r"Total \w*FLOPs", "FLOPs", json.dumps(shown)))
    assert shown[0] == shown[1]


def test_sorting_limits_and_units() -> None:
    prof = recorded(taeda, perceptron(taeda))
    text = prof.key_averages().table(
        sort_by="self_cpu_time_total", row_limit=2, time_unit="ms", header="HEAD"
    )
    lines = text.splitlines()
    assert lines[1] == "HEAD" and set(lines[0]) == {"="}
    rows = [line.split() for line in lines[5:7]]
    own = [float(row[2].removesuffix("ms")) for row in rows]
    assert own == sorted(own, reverse=True)
    assert lines[-1].startswith("Self CPU time total: ")
    top = prof.events().table(top_level_events_only=True, row_limit=-1)
    assert "only display top-level ops" in top and "evaluate_function" in top
    counts = {a.key: a.count for a in prof.key_averages()}
    assert counts["aten::linear"] == 2
    total = prof.key_averages().total_average()
    assert total.key == "Total" and total.count == len(prof.events())
    own = sum(e.self_cpu_time_total for e in prof.events())
    assert total.self_cpu_time_total == pytest.approx(own)


def test_memory_of_operators() -> None:
    kept = []

    def step() -> None:
        with record_function("kept"):
            kept.append(taeda.ones(256))
        with record_function("freed"):
            taeda.zeros(512).exp()

    prof = recorded(taeda, step, profile_memory=True)
    by_name = {e.name: e for e in prof.events()}
    assert by_name["kept"].cpu_memory_usage == 1024
    assert by_name["aten::ones"].cpu_memory_usage == 1024
    assert by_name["freed"].cpu_memory_usage == 0
    assert by_name["aten::exp"].cpu_memory_usage == 2048
    assert by_name["freed"].self_cpu_memory_usage == -4096


def test_flops_are_those_of_the_products() -> None:
    def step() -> None:
        taeda.ones(3, 4) @ taeda.ones(4, 5)
        taeda.nn.functional.linear(taeda.ones(2, 3, 4), taeda.ones(6, 4))
        taeda.nn.functional.conv2d(taeda.ones(1, 2, 5, 5), taeda.ones(3, 2, 3, 3))

    flops = {e.name: e.flops for e in recorded(taeda, step, with_flops=True).events()}
    assert flops["aten::matmul"] == 2 * 3 * 4 * 5
    assert flops["aten::linear"] == 2 * 6 * 4 * 6
    assert sum(f for n, f in flops.items() if f and "conv" in n) == 2 * 27 * 18


def test_stacks_name_the_program_also_in_the_backward_pass(tmp_path) -> None:
    x = taeda.ones(500, 500, requires_grad=True)

    def where() -> None:
        x.exp().sum().backward()

    prof = recorded(taeda, where, with_stack=True)
    of = {e.name: e.stack for e in prof.events()}
    assert re.search(r"test_profile\.py\(\d+\): .*where", of["aten::exp"][0])
    assert of["ExpBackward0"] == of["aten::exp"]
    grouped = prof.key_averages(group_by_stack_n=2)
    assert all(len(a.stack) <= 2 for a in grouped)
    assert "Source Location" in grouped.table()
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[^ ]+ \d+", line) for line in lines)
    assert any("where" in line for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks("x", "count")
    with pytest.raises(AssertionError, match="with_stack=True"):
        recorded(taeda, where).export_stacks("x")


def test_traces_have_the_keys_of_pytorchs(tmp_path) -> None:
    traces = []
    for L in (taeda, torch):
        prof = recorded(L, perceptron(L), record_shapes=True, profile_memory=True)
        prof.add_metadata_json("epoch", "3")
        path = str(tmp_path / f"{L.__name__}.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            traces.append(json.load(file))
    own, real = traces
    assert own["epoch"] == 3
    assert set(real) <= set(own)

    def keys(trace) -> dict:
        out = {}
        for event in trace["traceEvents"]:
            key = (event["ph"], event.get("cat"))
            out.setdefault(key, (set(event), set(event.get("args", ()))))
        return out

    ours, theirs = keys(own), keys(real)
    for kind in [("X", "cpu_op"), ("s", "fwdbwd"), ("f", "fwdbwd"), ("X", "Trace")]:
        assert theirs[kind][0] <= ours[kind][0]
    kind = ("i", "cpu_instant_event")
    assert theirs[kind][0] <= ours[kind][0]
    assert theirs[kind][1] - {"finished", "Ev Idx"} <= ours[kind][1]


def test_perfettos_rules(tmp_path) -> None:
    """Slices of a thread nest, arrows begin and end in slices, times are numbers."""
    prof = recorded(taeda, perceptron(taeda, "entropy"), with_modules=True)
    path = tmp_path / "trace.json.gz"
    prof.export_chrome_trace(str(path))
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X" and e["cat"] != "Trace"]
    assert all(isinstance(e["ts"], float) and e["dur"] >= 0 for e in slices)
    around: list = []
    for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        while around and around[-1]["ts"] + around[-1]["dur"] <= e["ts"]:
            around.pop()
        if around:
            end = around[-1]["ts"] + around[-1]["dur"]
            assert e["ts"] + e["dur"] <= end + 0.002, (e, around[-1])
        around.append(e)
    arrows = [e for e in events if e["ph"] in "sf"]
    assert arrows and len(arrows) % 2 == 0
    starts = {(e["tid"], e["ts"]) for e in slices}
    assert all((e["tid"], e["ts"]) in starts for e in arrows)
    modules = [e["name"] for e in slices if e["cat"] == "python_function"]
    assert "nn.Module: Sequential.0" in modules


def test_modules_and_optimizers_are_named() -> None:
    model = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU())
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(taeda.ones(1, 2)).sum().backward()
        optimizer.step()

    events = recorded(taeda, step, with_modules=True).events()
    of = {e.name: e.module for e in events if e.cpu_parent is None or e.scope == 1}
    assert of["aten::linear"] == "Sequential.0"
    assert of["ReluBackward0"] == of["aten::relu"] == "Sequential.1"
    assert of["aten::sum"] == ""
    assert "Optimizer.step#SGD.step" in of


def test_record_function_as_decorator_and_without_profile() -> None:
    @record_function("named")
    def work(x):
        return x + 1

    assert work(1) == 2
    with profile() as prof:
        work(taeda.ones(1))
    named = [e for e in prof.events() if e.name == "named"]
    assert len(named) == 1 and named[0].is_user_annotation
    assert [c.name for c in named[0].cpu_children] == ["aten::add"]


def test_handler_writes_files_for_tensorboard(tmp_path) -> None:
    handler = taeda.profiler.tensorboard_trace_handler(str(tmp_path / "logs"), "w0")
    with profile(on_trace_ready=handler):
        taeda.ones(1)
    (file,) = (tmp_path / "logs").iterdir()
    assert re.fullmatch(r"w0\.\d+\.pt\.trace\.json", file.name)
    assert json.loads(file.read_text())["traceEvents"]
    (tmp_path / "file").write_text("")
    handler = taeda.profiler.tensorboard_trace_handler(str(tmp_path / "file" / "x"))
    with pytest.raises(RuntimeError, match="Can't create directory"):
        with profile(on_trace_ready=handler):
            pass


def test_events_add_up_where_they_are_to() -> None:
    for acc, count in ((True, 2), (False, 1)):
        prof = profile(acc_events=acc)
        for _ in range(2):
            with prof:
                taeda.ones(1)
        assert len(prof.events()) == count


def test_arguments_that_are_wrong() -> None:
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    with pytest.raises(AssertionError, match="must be initialized"):
        profile().events()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(
            activities=list(taeda.profiler.ProfilerActivity)[:1]
            + [taeda.profiler.ProfilerActivity.CUDA]
        )
    for refused in (
        taeda.autograd.profiler.emit_nvtx,
        taeda.autograd.profiler.emit_itt,
    ):
        with refused(enabled=False):
            pass
        with pytest.raises(RuntimeError, match=refused.__name__):
            refused().__enter__()
    assert not taeda.profiler.itt.is_available()
    with pytest.raises(RuntimeError, match="ITT"):
        taeda.profiler.itt.mark("x")
