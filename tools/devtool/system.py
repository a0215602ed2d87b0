"""System packages and the virtual environment."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from typing import Any

from devtool.shell import ROOT, VENV, Failure, output, run, say


def _has_compiler() -> bool:
    """g++ 12 is the oldest whose C++20 the library is built with."""
    version = output(["g++", "-dumpfullversion"]).strip()
    return bool(version) and int(version.split(".")[0]) >= 12


def _has_python_headers() -> bool:
    return pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()


def _missing(tests: bool) -> tuple[list[str], list[str]]:
    """Debian packages that are needed, and those that only help."""
    needed = []
    if not _has_compiler():
        needed.append("g++")
    if not _has_python_headers():
        needed.append("python3-dev")
    if importlib.util.find_spec("ensurepip") is None:
        needed.append("python3-venv")
    if tests and not pathlib.Path("/usr/include/gtest/gtest.h").exists():
        needed.append("libgtest-dev")
    helpful = [
        package
        for package, program in (("ccache", "ccache"), ("lld", "ld.lld"))
        if not shutil.which(program)
    ]
    # Without it process groups stay on one host.
    if not pathlib.Path("/usr/include/gloo/context.h").exists():
        helpful.append("libgloo-dev")
    return needed, helpful


def _apt_install(packages: list[str]) -> bool:
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    if run(["apt-get", "update", "-qq"], env=env, check=False):
        return False
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    return run(command + packages, env=env, check=False) == 0


def system_packages(tests: bool) -> None:
    """Installs what is missing where root and apt allow it, else names it."""
    needed, helpful = _missing(tests)
    if not needed and not helpful:
        say("system packages: all there")
        return
    can_install = os.geteuid() == 0 and shutil.which("apt-get") is not None
    if can_install:
        say("installing system packages: " + " ".join(needed + helpful))
        if not _apt_install(needed + helpful) and needed:
            _apt_install(needed)
        needed, helpful = _missing(tests)
    if needed:
        names = " ".join(needed)
        raise Failure(
            f"missing system packages: {names}. They could not be installed from "
            f"here; as root: apt-get install {names}"
        )
    if helpful:
        say("not installed, builds are slower or less without: " + " ".join(helpful))


def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)


def group(name: str) -> list[str]:
    """The requirements of a dependency group and of the groups that it includes."""
    wanted = []
    for entry in project()["dependency-groups"][name]:
        included = isinstance(entry, dict)
        wanted += group(entry["include-group"]) if included else [entry]
    return wanted


def _requirements(tests: bool) -> list[str]:
    wanted = project()["build-system"]["requires"]
    return list(dict.fromkeys([*wanted, *group("test" if tests else "demo")]))


def normal(requirement: str) -> str:
    """The package's name in a requirement, in the registry's spelling."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name.group(0)).lower() if name else requirement


def virtual_environment(tests: bool) -> None:
    """Makes .venv and installs the requirements, unless they are there already."""
    wanted = _requirements(tests)
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()
    stamp = VENV / ("installed-test" if tests else "installed")
    if stamp.exists() and stamp.read_text() == key:
        say(".venv: all there")
        return
    if not (VENV / "bin" / "python").exists():
        say("making the virtual environment .venv")
        run([sys.executable, "-m", "venv", VENV])
    say("installing into .venv: " + " ".join(map(normal, wanted)))
    pip = [VENV / "bin" / "python", "-m", "pip", "install"]
    run([*pip, "-qq", "--disable-pip-version-check", *wanted])
    stamp.write_text(key)


def setup(tests: bool = True) -> None:
    """Everything that a build (and the tests) needs. Safe to run again."""
    system_packages(tests)
    virtual_environment(tests)


def enter_venv() -> None:
    """Goes on under .venv's Python, so that builds find its packages."""
    own = VENV / "bin" / "python"
    inside = pathlib.Path(sys.prefix).resolve() == VENV.resolve()
    if own.exists() and not inside:
        sys.stdout.flush()
        status = subprocess.run([str(own), *sys.argv], stdin=subprocess.DEVNULL)
        raise SystemExit(status.returncode)
