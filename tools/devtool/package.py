"""The wheel: built with pip, measured, and imported where nothing else is."""

from __future__ import annotations

import pathlib
import sys
import tempfile

from devtool.shell import python, run, say

WHEEL_LIMIT_MB = 40.0

# Runs in a fresh environment without NumPy: results with threads on, and the lookup
# path of the C++ package.
SMOKE = """
import pathlib, taeda
x = taeda.ones(300, 300)
assert (x @ x).sum().item() == 300.0 ** 3
assert taeda.exp(taeda.zeros(3)).tolist() == [1.0, 1.0, 1.0]
here = pathlib.Path(taeda.__file__).parent
assert (here / "share/cmake/Taeda/TaedaConfig.cmake").exists()
assert (here / "include/taeda/c10").is_dir()
print("installed package works:", here)
"""


def build_wheel(folder: pathlib.Path) -> pathlib.Path | None:
    """Builds the wheel as a user would (isolated); None when that fails."""
    command = [python(), "-m", "pip", "wheel", ".", "--no-deps", "-w", str(folder)]
    if run(command, check=False):
        return None
    return next(iter(folder.glob("taeda-*.whl")), None)


def check_wheel() -> bool:
    """True when the wheel builds, is small enough, and works on its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        wheel = build_wheel(folder)
        if wheel is None:
            return False
        size = wheel.stat().st_size / 1e6
        say(f"{wheel.name}: {size:.1f} MB (limit {WHEEL_LIMIT_MB:.0f})")
        run([sys.executable, "-m", "venv", folder / "env"])
        fresh = folder / "env" / "bin" / "python"
        pip = [fresh, "-m", "pip", "--disable-pip-version-check", "install"]
        run([*pip, "--quiet", "--no-index", wheel])
        works = run([fresh, "-I", "-c", SMOKE], check=False, quiet=True) == 0
        return works and size <= WHEEL_LIMIT_MB
