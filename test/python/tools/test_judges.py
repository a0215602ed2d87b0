"""CI's judges: every name counts, and nothing that judges may be missing."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

CI = pathlib.Path(__file__).resolve().parents[3] / ".ci"
TOOLS = ("train", "modules", "optim", "checkpoint", "compile")
COMPILED = ("train", "modules")
ON_DEVICE = ("train", "modules")
BASELINE = """optim SGD 3
  sparse / steps
modules nn.Linear 1
"""


def _module(name: str):
    spec = importlib.util.spec_from_file_location(f"ci_{name}", CI / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def conform():
    return _module("by_name")


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
    names = ("conform", "conform_compiled", "opcheck", "opcheck_further")
    names += ("opcheck_device",)
    lists = {f"test/{name}_baseline.list" for name in names}
    assert missing == lists | {"test/opinfo/known_gaps.toml"}


def test_clone_without_judges_says_so(tree) -> None:
    assert _judges(tree, "none").returncode == 0
    assert "none beside this checkout" in _judges(tree, None).stdout


def _gap_text(operator: str) -> str:
    return (
        f'[[gap]]\nreason = "rounding"\noperators = ["{operator}"]\n'
        'dtypes = ["bool"]\nchecks = ["forward"]\n'
    )


@pytest.fixture(scope="module")
def known_gaps():
    return _module("known_gaps")


GAP = {"reason": "why", "operators": ["a", "b"], "dtypes": ["f"], "checks": ["x", "y"]}


@pytest.mark.parametrize(
    ("failing", "varies", "errors", "notes"),
    [
        ([("a", "f", "x"), ("b", "f", "y")], False, [], []),
        ([("a", "f", "x")], False, ["b passes: why"], []),
        ([("a", "f", "x")], True, [], ["b passes: why"]),
        (
            [("a", "f", "x"), ("b", "f", "y"), ("b", "g", "y")],
            False,
            ["not a known gap: b/g/y"],
            [],
        ),
    ],
    ids=["all known", "stale", "stale elsewhere", "new"],
)
def test_gaps_are_held_both_ways(known_gaps, failing, varies, errors, notes) -> None:
    found = known_gaps.compare([GAP | {"varies": varies}], {*failing})
    assert found == (errors, notes)


# Stands for every judge: writes one passing check where results are asked for, notes
# its call, and fails as often as the file beside it says.
JUDGE = """
import json, pathlib, sys

def main():
    here, name = pathlib.Path(__file__).parents[1], pathlib.Path(__file__).parent.name
    with open(here / "calls", "a") as file:
        print(name, *sys.argv[1:], file=file)
    if name == "conform":
        tool = sys.argv[1]
        row = {"tool": tool, "unit": "A", "case": "c", "check": "k", "status": "pass"}
        pathlib.Path(sys.argv[sys.argv.index("--out") + 1]).write_text(json.dumps(row))
    if name == "opcheck":
        row = {"op": "abs", "dtype": "bool", "check": "forward", "status": "fail"}
        folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.jsonl").write_text(json.dumps(row))
    failures = here / f"fails-{name}"
    left = int(failures.read_text()) if failures.exists() else 0
    failures.write_text(str(left - 1))
    return int(left > 0)
"""


@pytest.fixture
def judged(tree) -> pathlib.Path:
    """A checkout with baselines and a library, and judges beside it that agree."""
    judges = tree.parent / "judges"
    for name in ("bench", "conform", "opcheck", "originality"):
        (judges / name).mkdir(parents=True)
        (judges / name / "__init__.py").write_text("")
        (judges / name / "cli.py").write_text(JUDGE)
        entry = f"import sys; from {name}.cli import main; sys.exit(main())"
        (judges / name / "__main__.py").write_text(entry)
    script = JUDGE + "sys.exit(main())"
    (judges / "originality" / "originality.py").write_text(script)
    for folder in ("test/opinfo", "tools", "build/lib", ".venv/bin"):
        (tree / folder).mkdir(parents=True)
    runner = tree / "tools" / "dev"  # `tools/dev emulate COMMAND...`
    runner.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    runner.chmod(0o755)
    lines = "".join(f"{tool} A 1\n" for tool in TOOLS)
    (tree / "test" / "conform_baseline.list").write_text(lines)
    lines = "".join(f"{tool} A 1\n" for tool in COMPILED)
    (tree / "test" / "conform_compiled_baseline.list").write_text(lines)
    for name in ("opcheck", "opcheck_further", "opcheck_device"):
        (tree / "test" / f"{name}_baseline.list").write_text("abs/bool/forward\n")
    (tree / "test" / "opinfo" / "known_gaps.toml").write_text(_gap_text("abs"))
    (tree / "build" / "lib" / "libtaeda.so").write_bytes(b"library")
    # Not a link: Python would take the folder of the link for a bare environment.
    start = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    (tree / ".venv" / "bin" / "python").write_text(start)
    (tree / ".venv" / "bin" / "python").chmod(0o755)
    return tree


def test_every_judge_is_asked_at_every_level(judged) -> None:
    done = _judges(judged, "../judges")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = (judged.parent / "judges" / "calls").read_text().splitlines()
    words = [tuple(call.split()[:2]) for call in calls]
    for tool in TOOLS:
        asked = [call for call in calls if call.startswith(f"conform {tool} ")]
        libraries = [call.split("--lib ")[1].split()[0] for call in asked]
        on_device = ["cuda_taeda"] * (tool in ON_DEVICE)
        compiled = ["compiled_taeda"] * (tool in COMPILED)
        assert libraries == ["taeda", *compiled, *on_device]
    levels = done.stdout.count("TAEDA_CPU_CAPABILITY=")
    assert words.count(("opcheck", "run")) == levels + 2 > 2
    assert all("--baseline" in call for call in calls if call.startswith("opcheck"))
    assert sum("jvp,gradgrad,vmap,meta" in call for call in calls) == 1
    assert sum("--device cuda" in call for call in calls) == 1
    assert [name for name, *_ in words].count("bench") == 1


@pytest.mark.parametrize(
    ("judge", "failures", "status"),
    [("conform", 1, 1), ("opcheck", 1, 1), ("originality", 1, 1)]
    + [("bench", 2, 0), ("bench", 3, 1)],
)
def test_a_judge_that_fails_fails_all(judged, judge, failures, status) -> None:
    (judged.parent / "judges" / f"fails-{judge}").write_text(str(failures))
    assert _judges(judged, "../judges").returncode == status


def test_large_library_fails(judged) -> None:
    with open(judged / "build" / "lib" / "libtaeda.so", "wb") as file:
        file.truncate(24_000_001)
    assert _judges(judged, "../judges").returncode == 1


@pytest.mark.parametrize(
    ("detail", "excused"),
    [
        ("loss at eval: 1.01 instead of 0.97 (0.04)", True),
        ("loss at 3: 0.97 instead of 1.01 (0.04)", False),
        ("loss at eval: nan instead of 1.01 (nan)", False),
        ("AttributeError: eval", False),
    ],
)
def test_a_loss_nearer_to_double_precision(
    conform, monkeypatch, detail, excused
) -> None:
    monkeypatch.setattr(conform, "double_loss", lambda unit, where: 1.0)
    record = {"tool": "train", "unit": "cnn.sgd", "detail": detail}
    assert conform.nearer_in_double(record) == excused
    assert not conform.nearer_in_double(record | {"tool": "optim"})


def test_a_cell_without_reason_fails(judged) -> None:
    gaps = judged / "test" / "opinfo" / "known_gaps.toml"
    gaps.write_text(_gap_text("neg"))
    done = _judges(judged, "../judges")
    assert done.returncode == 1
    assert "not a known gap: abs/bool/forward" in done.stdout
    assert "neg passes: rounding" in done.stdout
