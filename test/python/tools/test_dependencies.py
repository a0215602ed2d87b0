"""What the tree imports, what pyproject.toml declares and VERSIONS lists agree."""

from __future__ import annotations

import ast
import importlib.metadata
import pathlib
import re
import sys

import pytest
from devtool import system
from devtool.shell import ROOT

# Programs and plugins that are run, not imported, and the call that runs each.
PROGRAMS = {
    "clang-format": ("tools/lint/format.py", '"clang-format"'),
    "pytest-xdist": ("tools/devtool/checks.py", '"--dist=loadfile"'),
    "mpich": ("test/python/distributed/ranks.py", '"mpiexec"'),
    "mypy": ("tools/devtool/checks.py", 'tool("mypy")'),
    "ruff": ("tools/devtool/checks.py", 'tool("ruff")'),
}
DEVELOPMENT = ("test", "tools", "benchmarks", "docs", "aten")
# What builds; the rest of the build requirements goes into the wheel.
BUILD_TOOLS = {"setuptools", "cmake", "ninja"}


def sources(*folders: str) -> list[pathlib.Path]:
    """The Python files below some folders of the tree.

    Programs on other packages have a table of their own, which pins what they need.
    """
    found = [path for f in folders for path in sorted((ROOT / f).rglob("*.py"))]
    found = [path for path in found if ROOT / "test/ecosystem" not in path.parents]
    assert len(found) > len(folders)
    return found


def imported(path: pathlib.Path) -> set[str]:
    """The outermost modules that a file imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and node.args:
            function = ast.unparse(node.func).removeprefix("importlib.")
            first = node.args[0]
            if function in ("import_module", "util.find_spec", "find_spec"):
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names.add(first.value)
    return {name.partition(".")[0] for name in names}


def third_party(*folders: str) -> dict[str, list[str]]:
    """Distribution to the files that import it, own modules left out."""
    files = sources(*folders)
    own = {"taeda", "test", "tools", "devtool", "docsite", "simulate"}
    own |= {p.stem for p in sources(*DEVELOPMENT)}
    known = importlib.metadata.packages_distributions()
    used: dict[str, list[str]] = {}
    for path in files:
        for name in imported(path) - own - sys.stdlib_module_names:
            for package in known.get(name, [name]):
                place = str(path.relative_to(ROOT))
                used.setdefault(system.normal(package), []).append(place)
    return used


def declared(requirements: list[str]) -> set[str]:
    return {system.normal(requirement) for requirement in requirements}


def build_requirements() -> list[str]:
    return system.project()["build-system"]["requires"]


def extras() -> dict[str, list[str]]:
    return system.project()["project"]["optional-dependencies"]


# `google` and `nvidia` are namespaces of many distributions.
def missing(used: dict[str, list[str]], have: set[str]) -> dict[str, list[str]]:
    shared = {"google": "protobuf", "nvidia": "nvidia-cuda-nvrtc"}
    return {n: at for n, at in used.items() if shared.get(n, n) not in have}


def test_development_imports_are_declared() -> None:
    have = declared(system.group("test") + build_requirements())
    assert missing(third_party(*DEVELOPMENT), have) == {}


def test_what_is_declared_is_used() -> None:
    used = third_party(*DEVELOPMENT, "python") | PROGRAMS
    unused = declared(system.group("test")) - set(used)
    assert unused == set()
    for place, call in PROGRAMS.values():
        assert call in (ROOT / place).read_text()


def test_package_imports_are_optional_extras() -> None:
    have = {name for wanted in extras().values() for name in declared(wanted)}
    assert missing(third_party("python"), have) == {}
    assert system.project()["project"]["dependencies"] == []


def test_extras_are_tested_with() -> None:
    wanted = {name for extra in extras().values() for name in declared(extra)}
    assert wanted <= declared([*system.group("test"), *build_requirements()])


@pytest.mark.parametrize("requirement", system.group("test"))
def test_development_versions_are_exact(requirement: str) -> None:
    name, exact, version = requirement.partition("==")
    assert exact and re.fullmatch(r"[0-9][0-9a-z.]*", version)
    assert importlib.metadata.version(name).partition("+")[0] == version


def test_the_list_of_versions_agrees_with_the_build_requirements() -> None:
    listed = {}
    for line in (ROOT / "third_party" / "VERSIONS").read_text().splitlines():
        if not line.startswith("#"):
            _, package, version, *rest = (field.strip() for field in line.split("|"))
            assert len(rest) == 2 and all(rest)
            if package.startswith("PyPI "):
                listed[package.removeprefix("PyPI ")] = version.removeprefix("==")
    wanted = {}
    for requirement in build_requirements():
        name = re.match(r"[\w-]+", requirement).group()
        if name not in BUILD_TOOLS:
            wanted[name] = requirement.removeprefix(name).removeprefix("==")
    assert listed == wanted


def test_no_test_skips_for_a_missing_package() -> None:
    calls = re.compile(r"importorskip\(|mark\.skip|pytest\.skip\(|GTEST_SKIP")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*sources("test"), *(ROOT / "test" / "cpp").rglob("*.*")]
        if path != pathlib.Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if calls.search(line)
    ]
    assert found == []
