"""tools/dev: parsing, counting and linking."""

from __future__ import annotations

import pathlib
import re
import time

import pytest
from devtool import checks, cmake, shell, stats, system


def _report(folder: pathlib.Path, attributes: str) -> pathlib.Path:
    path = folder / "report.xml"
    path.write_text(f"<testsuites><testsuite {attributes}/></testsuites>")
    return path


def test_report_is_counted(tmp_path: pathlib.Path) -> None:
    report = _report(tmp_path, 'tests="9" failures="1" errors="1" skipped="2"')
    assert str(checks._read_junit(report, 1)) == "5 passed, 2 failed, 2 skipped"


@pytest.mark.parametrize(
    ("attributes", "status"),
    [('tests="0"', 0), ('tests="2" skipped="2"', 0), ('tests="3"', 1)],
    ids=["nothing collected", "all skipped", "died after its tests"],
)
def test_empty_or_dying_run_fails(
    tmp_path: pathlib.Path, attributes: str, status: int
) -> None:
    assert checks._read_junit(_report(tmp_path, attributes), status).failed == 1


def test_missing_report_fails(tmp_path: pathlib.Path) -> None:
    assert checks._read_junit(tmp_path / "none.xml", 0).failed == 1


def test_failures_stand_by_name(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite tests="3" failures="1" errors="1"><testcase classname="a" name="b">'
        '<failure/></testcase><testcase classname="a" name="c"><error/></testcase>'
        '<testcase classname="a" name="d"/></testsuite>'
    )
    assert checks._read_junit(report, 1).names == ["a: b", "a: c"]


def test_running_test_is_noted_and_forgotten(tmp_path: pathlib.Path) -> None:
    running = tmp_path / "running"
    running.mkdir()
    conftest = shell.ROOT / "test" / "python" / "conftest.py"
    (tmp_path / "conftest.py").write_text(conftest.read_text())
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib\n"
        "def test_runs():\n"
        "    folder = pathlib.Path(os.environ['TAEDA_RUNNING_TESTS'])\n"
        "    (folder / 'copy').write_text((folder / str(os.getpid())).read_text())\n"
    )
    command = [shell.python(), "-m", "pytest", "-q", f"--rootdir={tmp_path}"]
    env = {"TAEDA_RUNNING_TESTS": str(running)}
    shell.run([*command, tmp_path / "test_it.py"], env=env)
    assert checks._unfinished(running) == ["did not end: test_it.py::test_runs"]


def test_axes_are_counted_by_reason() -> None:
    head, *reasons = stats.axes_lines(stats._load())
    found = [int(word) for word in re.findall(r"\d+", head)]
    assert found[0] == found[2] + found[3] > 300 and found[1] < found[0]
    assert sum(int(line.split()[0]) for line in reasons) == found[3]
    assert all(" opaque: " in line for line in reasons)


RECORDS = """
- name: twice
  doc: Twice.
  family: pointwise
  foreach: true
  dtypes: {in: float}
  overloads: [{schema: "twice(Tensor self) -> Tensor", expr: "self + self"}]
- name: _half
  doc: Half.
  family: kernel
  python: {private: true}
  axes: "opaque: it reads everything"
  overloads: [{schema: "_half(Tensor self) -> Tensor", any: half}]
- name: _third
  doc: A third.
  family: kernel
  axes: "* -> *"
  overloads: [{schema: "_third(Tensor self) -> Tensor", cpu: third}]
"""


def test_contract_is_counted() -> None:
    from tools.codegen.records import load_text

    records = load_text(RECORDS)
    found = {name: value for name, value, *_ in stats.contract(records)}
    assert found["opaque kernel records"] == 1
    assert found["kernel overloads without axes"] == 0
    assert found["percent of overloads by formula"] == pytest.approx(50)
    assert stats.helper_records(records) == ["_half"]
    families = "kernel 2, foreach of pointwise 1, pointwise 1"
    assert stats.family_line(records) == f"overloads: 4: {families}"


def test_helper_records_are_unknown_to_pytorch() -> None:
    """What PyTorch has under the name is its operator, not a helper of ours."""
    import torch

    from tools.codegen.records import load_records

    helpers = stats.helper_records(load_records(shell.ROOT / "aten" / "ops"))
    assert [name for name in helpers if hasattr(torch.ops.aten, name)] == []
    assert len(helpers) <= stats.MAX_HELPER_RECORDS


def test_unknown_section_is_named() -> None:
    with pytest.raises(shell.Failure, match="no such section: nonsense"):
        checks.run_sections(["nonsense"])


def test_run_reports_status_and_absence() -> None:
    with pytest.raises(shell.Failure, match="exit status 3"):
        shell.run(["sh", "-c", "exit 3"])
    with pytest.raises(shell.Failure, match="not installed"):
        shell.run(["taeda-no-such-program"])


def test_run_ends_what_hangs_with_all_that_it_started(tmp_path: pathlib.Path) -> None:
    number = tmp_path / "number"
    with pytest.raises(shell.Failure, match="timed out after 1 s"):
        shell.run(["sh", "-c", f"sleep 600 & echo $! > {number}; wait"], timeout=1)
    state = pathlib.Path("/proc", number.read_text().strip(), "stat")
    for _ in range(100):
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the process that the command had started still runs")


def test_crashes_are_shown_and_forgotten(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shell, "ROOT", tmp_path)
    kept, core = tmp_path / "core.txt", tmp_path / "core.12"
    kept.write_text("no memory of a process")
    core.write_bytes(b"\x7fELF" + bytes(100))
    shell.show_cores()
    assert kept.exists() and not core.exists()
    assert "core.12: the stack of a process" in capfd.readouterr().out


def test_link_is_corrected_but_no_file_replaced(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "build" / "lib"
    target.mkdir(parents=True)
    link = tmp_path / "lib"
    link.symlink_to("elsewhere")
    cmake._link(link, target)
    assert link.resolve() == target
    link.unlink()
    link.write_text("mine")
    with pytest.raises(shell.Failure, match="in the way"):
        cmake._link(link, target)


def test_requirements_have_the_build_and_test_ones() -> None:
    names = [system.normal(r) for r in system._requirements(tests=True)]
    assert {"pybind11", "scipy-openblas32", "torch", "pytest"} <= set(names)
    assert "torch" not in map(system.normal, system._requirements(tests=False))
