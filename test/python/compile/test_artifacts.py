"""Compiled kernels as bytes, and what the compiler tells of its work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda._logging import set_logs, trace_page

PROGRAM = """
import sys, taeda
if sys.argv[2] == "load":
    told = taeda.compiler.load_cache_artifacts(open(sys.argv[1], "rb").read())
    print(len(told.inductor_artifacts))
f = taeda.compile(lambda x: (x * 2).exp().softmax(-1), options={"blocking": True})
x = taeda.arange(12.0).view(3, 4)
assert taeda.allclose(f(x), (x * 2).exp().softmax(-1))
if sys.argv[2] == "save":
    data, told = taeda.compiler.save_cache_artifacts()
    print(len(told.inductor_artifacts))
    open(sys.argv[1], "wb").write(data)
"""


def run(archive: Path, what: str, cache: Path) -> int:
    """The program in a process of its own; how many artifacts it counted."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(archive), what],
        env={**os.environ, "TAEDA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def made(cache: Path) -> dict[str, int]:
    return {p.name: p.stat().st_ino for p in (cache / "kernels").iterdir()}


def test_a_machine_that_loads_artifacts_compiles_nothing(tmp_path) -> None:
    archive, first, second = (tmp_path / name for name in ("a", "first", "second"))
    assert run(archive, "save", first) == len(made(first)) == 1
    assert run(archive, "load", second) == 1
    loaded = made(second)
    assert loaded.keys() == made(first).keys()
    # A kernel that is compiled comes by a rename: another file.
    assert run(archive, "load", second) == 1
    assert made(second) == loaded


@pytest.mark.parametrize("cut", [0, 60, 200, -40])
def test_damaged_artifacts_are_left_out(cut, tmp_path, caplog, monkeypatch) -> None:
    archive = tmp_path / "a"
    run(archive, "save", tmp_path / "first")
    data = bytearray(archive.read_bytes())
    if cut > 0:
        data[cut] ^= 255
    monkeypatch.setenv("TAEDA_CACHE_DIR", str(tmp_path / "second"))
    told = taeda.compiler.load_cache_artifacts(bytes(data) if cut > 0 else data[:cut])
    assert told is None or told.inductor_artifacts == ()
    assert "artifact" in caplog.text
    assert made(tmp_path / "second") == {}


@pytest.fixture
def logs(caplog):
    """Says everything; the texts by their artifact."""
    set_logs(all=True)

    def told() -> dict[str, str]:
        by_name: dict[str, str] = {}
        for record in caplog.records:
            name = record.name.split(".")[-1]
            by_name[name] = by_name.get(name, "") + record.message
        return by_name

    yield told
    set_logs()


def broken(x):
    y = x * 2 + 1
    if y.sum() > 0:
        return y.relu() * 3
    return y


def test_logs_tell_operators_loops_and_kernels(logs) -> None:
    x = taeda.ones(4, 5, requires_grad=True)
    taeda.compile(broken)(x).sum().backward()
    told = logs()
    assert "region(" in told["aot_graphs"] and "Backward" in told["aot_graphs"]
    assert "load" in told["schedule"] and "store" in told["schedule"]
    assert 'extern "C" void region0' in told["output_code"]


def test_hints_say_why_a_graph_is_not_compiled(logs) -> None:
    taeda.compile(lambda x: x[x > 0].sum() + 1, fullgraph=True)(taeda.ones(3))
    assert "sizes follow from the elements" in logs()["perf_hints"]


def test_the_page_holds_everything(tmp_path) -> None:
    page = tmp_path / "page.html"
    with trace_page(page):
        taeda.compile(broken)(taeda.ones(4, 5))
        text = page.read_text()  # it is whole at any time
    kinds = re.findall(r'<details class="(\w+)">', text)
    assert {"graph", "graph_breaks", "guards", "schedule", "output_code"} <= set(kinds)
    assert "the value of a tensor is read by __bool__" in text
    assert "if y.sum() &gt; 0:" in text
    before = page.read_text()
    taeda.compile(lambda x: x + 1)(taeda.ones(2))
    assert page.read_text() == before


def test_the_environment_names_a_page(tmp_path) -> None:
    page = tmp_path / "page.html"
    subprocess.run(
        [sys.executable, "-c", "import taeda; taeda.compile(taeda.sin)(taeda.ones(1))"],
        env={**os.environ, "TAEDA_TRACE": str(page)},
        check=True,
    )
    assert '<details class="graph">' in page.read_text()
