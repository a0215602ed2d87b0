"""Configure, build and install with CMake, for tools/dev and for setup.py."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys

from devtool.shell import ROOT, Failure, run, say

PACKAGE = ROOT / "python" / "taeda"
SANITIZERS = ("address", "thread")
STAMP = "taeda-options.json"  # of what a tree was configured with


def _program(name: str) -> str:
    """cmake or ninja: beside this Python first (an environment that is not active)."""
    beside = pathlib.Path(sys.prefix, "bin", name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise Failure(f"{name} is not installed; run tools/dev setup")
    return found


def jobs() -> int:
    """Parallel compiler processes: the cores that this process may use."""
    return int(os.environ.get("TAEDA_JOBS", len(os.sched_getaffinity(0))))


def build_dir(sanitize: str | None = None) -> pathlib.Path:
    """The build folder of a configuration."""
    return ROOT / (f"build-{sanitize}" if sanitize else "build")


def build(
    tree: pathlib.Path,
    *,
    sanitize: str | None = None,
    tests: bool = False,
    fresh: bool = False,
    targets: tuple[str, ...] = (),
    modules_for: str = "",
) -> None:
    """Configures where needed, then builds.

    `modules_for` names another Python: then its extension modules are all that is
    built, as quickly as can be, over the libtaeda that stands in build/.
    """
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_MAKE_PROGRAM": _program("ninja"),
        "Python_EXECUTABLE": sys.executable,
        "TAEDA_SANITIZE": sanitize or "",
        # Python itself cannot run under the thread sanitizer.
        "TAEDA_BUILD_PYTHON": "OFF" if sanitize == "thread" else "ON",
    }
    if modules_for:
        options["Python_EXECUTABLE"] = modules_for
        options["TAEDA_LIBRARY_TREE"] = str(build_dir())
        options |= {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS_DEBUG": "-O0"}
    # Tests, once asked for, stay configured: switching would reconfigure each time.
    stamp = tree / STAMP
    before = json.loads(stamp.read_text()) if stamp.exists() else {}
    wanted_tests = tests or before.get("TAEDA_BUILD_TESTS") == "ON"
    options["TAEDA_BUILD_TESTS"] = "ON" if wanted_tests else "OFF"
    for item in os.environ.get("TAEDA_CMAKE_ARGS", "").split():
        key, _, value = item.removeprefix("-D").partition("=")
        options[key] = value
    if fresh or before != options or not (tree / "build.ninja").exists():
        command = [_program("cmake"), "-S", ROOT, "-B", tree, "-G", "Ninja"]
        command += ["--fresh"] if fresh else []
        run(command + [f"-D{key}={value}" for key, value in options.items()])
        stamp.write_text(json.dumps(options, indent=1))
    # Paths below the tree are cached as relative ones, so that copies of it share.
    cache = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    # What ccache asks for before it keeps objects made with precompiled headers: no
    # header's meaning changes by its time or by macros defined before it.
    sloppy = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
    cache["CCACHE_SLOPPINESS"] = sloppy
    run([_program("ninja"), "-C", tree, f"-j{jobs()}", *targets], env=cache)


def forget(tree: pathlib.Path) -> None:
    """Lets the next build of a tree configure it anew, in its own environment."""
    for name in (STAMP, "CMakeCache.txt"):
        (tree / name).unlink(missing_ok=True)


def install(tree: pathlib.Path, prefix: pathlib.Path) -> None:
    """Installs the wheel's files below a folder, stripped."""
    run([_program("cmake"), "--install", tree, "--prefix", prefix, "--strip"])


def _link(link: pathlib.Path, target: pathlib.Path) -> None:
    """Makes (or corrects) one relative link; leaves real files alone."""
    if link.is_symlink():
        link.unlink()
    elif link.exists():
        raise Failure(f"{link} is in the way of a link to {target}")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))


def _native_parts(tree: pathlib.Path) -> dict[str, pathlib.Path]:
    """What of a build belongs into the package: its place there, its file."""
    modules = tree.glob("_*.so")
    parts = {path.name: path for path in modules}
    parts["lib"] = tree / "lib"
    parts["include"] = tree / "include"
    generated = tree / "gen" / "python" / "taeda"
    for path in generated.rglob("*.py*"):
        parts[str(path.relative_to(generated))] = path
    return parts


def link_into_package(tree: pathlib.Path) -> None:
    """Makes python/taeda importable in place: links to what was built."""
    parts = _native_parts(tree)
    for place, target in parts.items():
        link = PACKAGE / place
        link.parent.mkdir(parents=True, exist_ok=True)
        _link(link, target)
    say(f"python/taeda is linked to {tree.name}/ ({len(parts)} links)")


def overlay(tree: pathlib.Path) -> pathlib.Path:
    """A PYTHONPATH for a second build: links to the package and to its own libraries.

    python/taeda itself stays linked to the main build.
    """
    package = tree / "python" / "taeda"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    parts = _native_parts(tree)
    for path in PACKAGE.iterdir():
        if path.name not in parts and not path.is_symlink():
            _link(package / path.name, path)
    for place, target in parts.items():
        link = package / place
        if not link.exists():
            _link(link, target)
    return package.parent
