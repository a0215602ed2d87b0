"""CI's judges: every name counts, and nothing that judges may be missing."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import shutil
import subprocess

import pytest

CI = pathlib.Path(__file__).resolve().parents[3] / ".ci"
BASELINE = """optim SGD 3
  sparse / steps
modules nn.Linear 1
"""


@pytest.fixture(scope="module")
def conform():
    spec = importlib.util.spec_from_file_location("ci_conform", CI / "conform.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _row(unit: str, check: str, status: str = "pass", case: str = "plain", **more):
    tool = "modules" if unit.startswith("nn.") else "optim"
    row = {"tool": tool, "unit": unit, "case": case, "check": check, "status": status}
    return row | more


GOOD = [
    _row("SGD.float32", "steps"),
    _row("SGD.float64", "steps"),
    _row("SGD.float32", "steps", "missing", "sparse"),
    _row("nn.Linear.float32.train", "forward"),
    _row("nn.Linear.float32.eval", "copy", "skip"),
    _row("nn.Linear.float32.eval", "text", "fail", soft=True),
]


def _lines(conform, folder: pathlib.Path, rows: list[dict], excused=lambda r: False):
    results, baseline = folder / "r.jsonl", folder / "b.list"
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    baseline.write_text(BASELINE)
    found = conform.read_results([str(results)])
    return conform.judge(*conform.read_baseline(str(baseline)), found, excused)


def test_known_failures_skips_and_soft_checks_pass(conform, tmp_path) -> None:
    assert _lines(conform, tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (GOOD[:3], "modules nn.Linear: 0 checks, the baseline has 1"),
        (GOOD[1:], "optim SGD: 2 checks, the baseline has 3"),
        ([*GOOD, _row("New.float32", "steps")], "optim New: not in the baseline"),
        (
            [*GOOD, _row("SGD.float32", "resume", "fail", detail="off by 1")],
            "optim SGD: plain / resume: fail off by 1",
        ),
        (
            [*GOOD, _row("SGD.float32", "resume", "crash", "sparse")],
            "optim SGD: sparse / resume: crash ",
        ),
    ],
    ids=["class gone", "check gone", "class unnamed", "fails", "other check fails"],
)
def test_each_name_counts(conform, tmp_path, rows, line) -> None:
    assert _lines(conform, tmp_path, rows) == [line]


def test_excused_failures_still_count_as_checks(conform, tmp_path) -> None:
    rows = [GOOD[0] | {"status": "fail"}, *GOOD[1:]]
    assert len(_lines(conform, tmp_path, rows)) == 1
    assert _lines(conform, tmp_path, rows, lambda r: r is not None) == []


def test_written_baseline_is_met(conform, tmp_path) -> None:
    _lines(conform, tmp_path, GOOD)
    found = conform.read_results([str(tmp_path / "r.jsonl")])
    path = str(tmp_path / "written.list")
    conform.write_baseline(path, found, lambda r: False)
    assert conform.judge(*conform.read_baseline(path), found, lambda r: False) == []


def _judges(tree: pathlib.Path, judges: str | None) -> subprocess.CompletedProcess:
    env = {"PATH": "/usr/bin:/bin"} | ({"TAEDA_JUDGES": judges} if judges else {})
    command = ["bash", str(tree / ".ci" / "judges")]
    return subprocess.run(command, env=env, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A checkout with CI's programs and nothing else, in a folder of its own."""
    tree = tmp_path / "place" / "tree"
    shutil.copytree(CI, tree / ".ci")
    return tree


def test_absent_judges_fail_where_they_are_asked_for(tree) -> None:
    done = _judges(tree, "../nowhere")
    assert done.returncode == 1
    for name in ("bench", "conform", "opcheck", "originality"):
        assert f"judges: no {tree.parent / 'nowhere' / name}" in done.stdout


def test_absent_baseline_fails(tree) -> None:
    for name in ("bench", "conform", "opcheck", "originality"):
        (tree.parent / "judges" / name).mkdir(parents=True)
    done = _judges(tree, "../judges")
    assert done.returncode == 1
    missing = {line.split()[-1] for line in done.stdout.splitlines()}
    names = ("conform", "opcheck", "opcheck_further")
    assert missing == {f"test/{name}_baseline.list" for name in names}


def test_clone_without_judges_says_so(tree) -> None:
    assert _judges(tree, "none").returncode == 0
    assert "none beside this checkout" in _judges(tree, None).stdout
