"""The Pythons that the package supports, and the extension modules of each."""

from __future__ import annotations

import pathlib
import shutil
import sys

from devtool import cmake, system
from devtool.shell import ROOT, Failure, output, run, say

SUPPORTED = ("3.11", "3.12", "3.13")
# What an interpreter needs to build its modules and to run their tests.
NEEDED = ("pybind11", "cmeel-fmt", "pytest", "pytest-xdist", "numpy")


def installed() -> dict[str, str]:
    """Version to path of the supported CPythons that are installed and can run."""
    found = {}
    homes = sorted((pathlib.Path.home() / ".pyenv" / "versions").glob("*/bin"))
    for version in SUPPORTED:
        name = f"python{version}"
        places = [shutil.which(name), *(str(home / name) for home in homes)]
        for place in filter(None, places):
            if output([place, "-c", "import ensurepip; print(1)"]).strip() == "1":
                found[version] = place
                break
    if not found:
        raise Failure("none of the supported Pythons is installed")
    return found


def others() -> dict[str, str | None]:
    """The same without the one that runs this; None for those that are absent."""
    own = "{}.{}".format(*sys.version_info)
    found = installed()
    return {v: found.get(v) for v in SUPPORTED if v != own}


def _environment(tree: pathlib.Path, interpreter: str) -> str:
    """A virtual environment in the build tree, and its Python."""
    own = tree / "env" / "bin" / "python"
    wanted = [*system.project()["build-system"]["requires"], *system.group("test")]
    wanted = sorted({r for r in wanted if system.normal(r) in NEEDED})
    stamp = tree / "env" / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
        run([interpreter, "-m", "venv", tree / "env"])
        pip = [own, "-m", "pip", "--disable-pip-version-check"]
        run([*pip, "install", "-qq", *wanted])
        stamp.write_text("\n".join(wanted))
    return str(own)


def build_modules(version: str, interpreter: str) -> tuple[str, dict[str, str]]:
    """Builds `_C` and `_capture` over the libtaeda of build/, which knows no Python.

    Returns:
        A Python, and the environment variables with which it imports them.
    """
    # Where no tool that reads the sources looks: it holds others' packages.
    tree = ROOT / ".cache" / f"python{version}"
    tree.mkdir(parents=True, exist_ok=True)
    own = _environment(tree, interpreter)
    say(f"CPython {version}: {interpreter}")
    cmake.build(tree, modules_for=own)
    # Tests of speed ask whether the modules are optimised; these are not.
    return own, {"PYTHONPATH": str(cmake.overlay(tree)), "TAEDA_UNOPTIMIZED": "1"}
