"""`tools/dev bench` and `tools/dev fuzz`: run what benchmarks/ and test/fuzz/ hold."""

from __future__ import annotations

from collections.abc import Sequence

from devtool import cmake
from devtool.shell import ROOT, Failure, output, python, run, say


def bench(arguments: Sequence[str]) -> int:
    """Builds, then runs benchmarks/run.py with the given arguments."""
    runner = ROOT / "benchmarks" / "run.py"
    if not runner.exists():
        raise Failure("benchmarks/run.py is missing")
    tree = cmake.build_dir()
    cmake.build(tree)
    cmake.link_into_package(tree)
    env = {"PYTHONPATH": str(ROOT / "python")}
    return run([python(), runner, *arguments], env=env, check=False)


def sanitizer_env(tree_package: str) -> dict[str, str]:
    """The environment in which Python loads an address-sanitized extension.

    Python itself leaks at exit, so leaks are looked for in the C++ tests only.
    """
    runtime = output(["g++", "-print-file-name=libasan.so"]).strip()
    standard = output(["g++", "-print-file-name=libstdc++.so.6"]).strip()
    return {
        "PYTHONPATH": tree_package,
        "LD_PRELOAD": f"{runtime} {standard}",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def fuzz(arguments: Sequence[str]) -> int:
    """Runs every test/fuzz/fuzz_*.py on the address-sanitized build.

    Each takes --seconds N and --seed N, and fails on the first finding.
    """
    targets = sorted((ROOT / "test" / "fuzz").glob("fuzz_*.py"))
    if not targets:
        raise Failure("test/fuzz holds no fuzz_*.py")
    tree = cmake.build_dir("address")
    cmake.build(tree, sanitize="address")
    env = sanitizer_env(str(cmake.overlay(tree)))
    failed = 0
    for target in targets:
        failed += run([python(), target, *arguments], env=env, check=False) != 0
    say(f"fuzz: {len(targets)} targets, {failed} with findings")
    return int(failed > 0)
