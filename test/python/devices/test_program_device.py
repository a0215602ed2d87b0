"""A device outside the tree, built against the package, passes its suite."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOY = HERE.parents[1] / "toy_device"
# A suite that collects nothing fails.
TESTS = 40
BUILD_SECONDS = 60

BUILD = "import sys; sys.path.insert(0, sys.argv[1]); import toy_device as t; t.build()"

PLAIN = """
import taeda
for call in (
    lambda: taeda.ones(2, device="privateuseone"),
    lambda: taeda.Generator("privateuseone"),
    lambda: taeda.Stream("privateuseone"),
):
    try:
        call()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
print(taeda.accelerator.current_accelerator(), taeda.ones(2).is_pinned())
with taeda.autocast("privateuseone"):
    pass
"""


def run(*words: str | Path, status: int = 0, **settings: str) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MAX_JOBS": "1", **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout[-6000:]
    return done.stdout


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where the package is, as a wheel would install it, and the built device."""
    from devtool import package

    site = tmp_path_factory.mktemp("site")
    package.install_into(site)
    folder = str(tmp_path_factory.mktemp("extensions"))
    return {"PYTHONPATH": str(site), "TAEDA_EXTENSIONS_DIR": folder}


@pytest.fixture(scope="module")
def seconds(settings: dict[str, str]) -> float:
    """What building the device took of one core."""
    before = cpu_seconds()
    run(sys.executable, "-c", BUILD, TOY, **settings)
    return cpu_seconds() - before


def test_it_builds_quickly(seconds: float) -> None:
    assert seconds < BUILD_SECONDS


def test_it_passes_the_suite(seconds: float, settings: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    printed = run(*command, HERE / "device_of_program.py", **settings)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None and int(passed[1]) >= TESTS, printed[-3000:]


def test_without_one_all_is_refused_by_name(settings: dict[str, str]) -> None:
    printed = run(sys.executable, "-c", PLAIN, status=1, **settings)
    lines = printed.splitlines()
    assert lines[0].startswith("no allocator for device type privateuseone")
    assert lines[1] == "no program has registered the device privateuseone"
    assert "privateuseone" in lines[2]
    assert lines[3] == "None False"
    assert "Tried to use AMP with the `privateuseone` backend" in printed
