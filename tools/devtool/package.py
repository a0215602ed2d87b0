"""The wheel: built in isolation, listed, measured, and used where nothing else is."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile

from devtool import audit, cmake
from devtool.shell import ROOT, python, run, say

WHEEL_LIMIT_MB = 40.0
# What an isolated build sees of the caller's environment: where the registry is, how
# many compilers may run, and where ccache keeps its objects.
KEPT = ("HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "TAEDA_JOBS", "CCACHE_DIR")


def _clean_environment() -> list[str]:
    """`env` with the caller's settings gone, .venv's programs among them."""
    names = [n for n in os.environ if n in KEPT or n.startswith("PIP_")]
    settings = [f"{name}={os.environ[name]}" for name in names]
    return ["env", "-i", "PATH=/usr/bin:/bin", *settings]


def copy_sources(folder: pathlib.Path) -> None:
    """The files that git tracks or would track, as a fresh clone has them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def _small_enough(wheel: pathlib.Path) -> bool:
    size = wheel.stat().st_size / 1e6
    say(f"{wheel.name}: {size:.1f} MB (limit {WHEEL_LIMIT_MB:.0f})")
    return size <= WHEEL_LIMIT_MB


def check_isolated(interpreter: str = "") -> bool:
    """`pip install .` of a fresh copy into a fresh environment, then its smoke test.

    In two steps, so that the wheel can be looked at in between. Nothing of .venv is
    seen: pip fetches the build requirements into an environment of its own.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        copy_sources(folder / "source")
        run([interpreter or python(), "-m", "venv", folder / "env"])
        clean = _clean_environment()
        fresh = [*clean, folder / "env" / "bin" / "python", "-I"]
        pip = [*fresh, "-m", "pip", "--disable-pip-version-check"]
        build = [*pip, "wheel", "--no-deps", "-w", folder, folder / "source"]
        if run(build, check=False):
            return False
        wheel = next(folder.glob("taeda-*.whl"))
        fine = [_small_enough(wheel), audit.report(wheel)]
        run([*pip, "install", "--quiet", "--no-index", wheel])
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        smoke = ROOT / "tools" / "devtool" / "smoke.py"
        words = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "-", elsewhere]
        fine.append(run([*words, *fresh, smoke], check=False) == 0)
        return all(fine)


def install_into(folder: pathlib.Path) -> None:
    """Puts what a wheel of the development build holds into a folder."""
    shutil.copytree(
        cmake.PACKAGE,
        folder / "taeda",
        ignore=lambda at, names: [
            name
            for name in names
            if name == "__pycache__" or pathlib.Path(at, name).is_symlink()
        ],
    )
    cmake.install(cmake.build_dir(), folder)
