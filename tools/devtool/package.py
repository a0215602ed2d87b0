"""The wheel: built with pip, measured, and imported where nothing else is."""

from __future__ import annotations

import pathlib
import shutil
import tempfile

from devtool import cmake
from devtool.shell import Failure, output, python, run, say

WHEEL_LIMIT_MB = 40.0
SUPPORTED = ("3.11", "3.12", "3.13")

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


def _check(wheel: pathlib.Path, folder: pathlib.Path, interpreter: str) -> bool:
    """True when a wheel is small enough and works where nothing else is installed."""
    size = wheel.stat().st_size / 1e6
    say(f"{wheel.name}: {size:.1f} MB (limit {WHEEL_LIMIT_MB:.0f})")
    run([interpreter, "-m", "venv", folder / "env"])
    fresh = folder / "env" / "bin" / "python"
    pip = [fresh, "-m", "pip", "--disable-pip-version-check", "install"]
    run([*pip, "--quiet", "--no-index", wheel])
    works = run([fresh, "-I", "-c", SMOKE], check=False, quiet=True) == 0
    return works and size <= WHEEL_LIMIT_MB


def check_wheel(
    interpreter: str = "", *options: str, env: dict[str, str] | None = None
) -> bool:
    """Builds the wheel with an interpreter and checks it."""
    interpreter = interpreter or python()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        command = [interpreter, "-m", "pip", "wheel", ".", "--no-deps", "-w", folder]
        if run([*command, *options], env=env, check=False):
            return False
        wheel = next(iter(folder.glob("taeda-*.whl")), None)
        return wheel is not None and _check(wheel, folder, interpreter)


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


def check_quick() -> bool:
    """The wheel from the development build: nothing is compiled a second time."""
    tree = cmake.build_dir()
    env = {"TAEDA_BUILD_DIR": tree.name}
    return check_wheel(python(), "--no-build-isolation", env=env)


def installed_pythons() -> dict[str, str]:
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
