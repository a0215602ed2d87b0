"""The guide to adding operators is true: what it shows is added, built and run.

Each block of code belongs to the path that was named last before it ("In `PATH`:"):
records and references are added to that file, C++ is the whole of a new one. Blocks of
Python without a path are run on the built tree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tree_copies import run, run_in_a_copy

GUIDE = "docs/guides/adding_an_operator.md"
BLOCK = re.compile(r"In\s+`([^`]+)`:\n+```(\w+)\n(.*?)```|```(\w+)\n(.*?)```", re.S)
# Families that a record may have, and what stands for lists and random operators.
TOLD = {"pointwise", "reduction", "kernel", "map", "composite", "view"}


def blocks(text: str) -> list[tuple[str | None, str, str]]:
    """The path, the language and the text of each block."""
    found = [m.groups() for m in BLOCK.finditer(text)]
    return [(p, a or b, c or d) for p, a, c, b, d in found]


def add_and_check(tree: Path) -> None:
    """What the guide claims, on a tree that may be changed."""
    programs, files = [], 0
    for path, language, text in blocks((tree / GUIDE).read_text()):
        if path is None:
            programs += [text] if language == "python" else []
            continue
        files += 1
        target = tree / path
        assert target.exists() != (language == "cpp"), path
        with open(target, "a") as file:
            file.write(text if language == "cpp" else f"\n{text}")
    assert len(programs) >= 8 and files >= 15, (len(programs), files)
    run(tree, "tools/dev", "build")
    for program in programs:
        run(tree, "-c", f"import taeda\n{program}", PYTHONPATH=str(tree / "python"))
    suite = "test/python/opinfo/test_pointwise.py"
    words = ("-m", "pytest", "-q", "-k", "blend or cubed", suite)
    report = run(tree, *words, PYTHONPATH=f"{tree}/python:{tree}/test/python/opinfo")
    assert re.search(r"\b\d+ passed", report), report
    print(report)


def test_every_family_has_an_example() -> None:
    shown = blocks((Path(__file__).parents[3] / GUIDE).read_text())
    records = [text for _, language, text in shown if language == "yaml"]
    assert set(re.findall(r"^  family: (\w+)", "".join(records), re.M)) >= TOLD
    assert any("foreach: true" in text for text in records)
    assert any("nondeterministic_seeded" in text for text in records)


def test_what_the_guide_adds_builds_and_runs(tmp_path: Path) -> None:
    run_in_a_copy(__file__, tmp_path)


if __name__ == "__main__":
    add_and_check(Path(sys.argv[1]))
