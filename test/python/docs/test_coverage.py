"""The README says of this library no more than is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import json, os
from docsite import coverage
print(json.dumps(coverage.compare()), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def found() -> dict:
    """Namespace to its number of names and those that are missing, as of now.

    In a process of its own, since it loads both libraries whole.
    """
    import json

    path = f"{ROOT / 'python'}:{ROOT / 'tools'}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_the_readme_promises_no_more_than_there_is(found: dict) -> None:
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `(torch[.\w]*)` \| (\d+) of (\d+) \|", text, re.M)
    assert len(rows) == 10
    for space, there, count in rows:
        total, missing = found[space]
        assert int(count) == total
        assert int(there) <= total - len(missing), space
    total, there = re.findall(r"PyTorch 2.13's (\d+) public names (\d+)", text)[0]
    real = sum(count - len(missing) for count, missing in found.values())
    assert int(total) == sum(count for count, _ in found.values())
    # Out of date by a few names at most: tools/dev docs --coverage.
    assert 0.9 * real <= int(there) <= real


def test_the_page_lists_all_that_is_missing(found: dict) -> None:
    page = (ROOT / "docs" / "not_there_yet.md").read_text()
    listed = {}
    for section in page.split("\n## ")[1:]:
        head, _, body = section.partition("\n")
        listed[head.partition(":")[0]] = set(re.findall(r"`([^`]+)`", body))
    for space, (_, missing) in found.items():
        names = {name.removeprefix(f"{space}.") for name in missing}
        assert names <= listed.get(space, set()), space


def test_what_is_there_is_found(found: dict) -> None:
    assert "torch.add" not in found["torch"][1]
    assert "torch.ao.quantization.QConfig" not in found["torch.nn"][1]
    assert len(found) > 40
