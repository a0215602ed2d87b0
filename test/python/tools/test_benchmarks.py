"""Every case of the benchmark table runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import taeda

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from cases import CASES, SETUP  # noqa: E402

NAMES = [(group, name) for group, cases in CASES.items() for name in cases]


def test_table_is_not_empty():
    assert len(NAMES) > 20


@pytest.mark.parametrize(("group", "name"), NAMES)
def test_case_runs(group, name):
    setup, statement = CASES[group][name]
    space = {"T": taeda}
    exec(SETUP + setup, space)
    exec(statement, space)
    exec(statement, space)
