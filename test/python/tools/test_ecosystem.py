"""The comparison of printed texts, and the table, of the section `ecosystem`."""

from __future__ import annotations

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from devtool import ecosystem  # noqa: E402


@pytest.mark.parametrize(
    ("found", "expected", "verdict"),
    [
        ("loss 0.50001 step 3", "loss 0.5 step 3", True),
        ("loss 0.51 step 3", "loss 0.5 step 3", False),
        ("tensor([1.,  2.])", "tensor([1., 2.])", True),
        ("ids [1, 2]", "ids [1, 3]", False),
        ("1e-05 lines", "1e-05 words", False),
        ("-0.25", "0.25", False),
        ("nan", "0.1", False),
        ("1 2", "1", False),
    ],
)
def test_printed_texts_agree(found, expected, verdict):
    assert ecosystem.agree(found, expected, 1e-3, 1e-4) is verdict


def test_every_program_has_what_it_prints_and_every_package_a_version():
    table = ecosystem.table()
    names = sorted(program["name"] for program in table["program"])
    for folder in ("programs", "expected"):
        files = (ecosystem.FOLDER / folder).iterdir()
        assert sorted(p.stem for p in files if p.suffix in (".py", ".txt")) == names
    assert all("==" in requirement for requirement in table["requirements"])
    assert all(sum(tests["counts"].values()) for tests in table["tests"])
