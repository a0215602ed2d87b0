"""The sections of `tools/dev test`."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from devtool import cmake, ecosystem, interpreters, package
from devtool.measure import sanitizer_env
from devtool.shell import (
    ROOT,
    Failure,
    Timer,
    keep_cores,
    python,
    run,
    say,
    show_cores,
    tool,
)

ACCURACY_SAMPLES = "20000"
SMOKE = "test/python/test_tiny.py"
CAPTURE = "test/python/compile"
# A short form of `tools/dev fuzz`: what a stranger's file reaches first, and the code
# that takes the interpreter's frames into its own hands.
FUZZERS = (
    "fuzz_checkpoints",
    "fuzz_hostile",
    "fuzz_compile",
    "fuzz_store",
    "fuzz_rpc",
)
FUZZ_SECONDS = 20
# A program of tests that hangs is ended, so that the sections after it still say
# what they find. The Python tests took 1,871 s beside a build on two slow cores.
LIMIT_SECONDS = 2000
# So many of a section's failures stand by name in the summary.
NAMED_FAILURES = 20


@dataclass
class Counts:
    """How many checks of a section passed, failed and were left out."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    # What failed or did not end, as far as names are known.
    names: list[str] = field(default_factory=list)

    def __iadd__(self, other: Counts) -> Counts:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.names += other.names
        return self

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def _status(ok: bool) -> Counts:
    return Counts(passed=int(ok), failed=int(not ok))


def _read_junit(report: pathlib.Path, status: int) -> Counts:
    """Counts of a report; a run that reports nothing counts as one failure."""
    if not report.exists():
        return Counts(failed=1)
    counts = Counts()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        number = {k: int(suite.get(k) or 0) for k in ("tests", "failures", "errors")}
        skipped = int(suite.get("skipped") or suite.get("disabled") or 0)
        failed = number["failures"] + number["errors"]
        counts += Counts(number["tests"] - failed - skipped, failed, skipped)
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts.names.append(f"{case.get('classname')}: {case.get('name')}")
    if counts.passed + counts.failed == 0 or (status and not counts.failed):
        counts.failed += 1
    return counts


def lint() -> int:
    """Layers, sizes, READMEs, requirements, ruff and clang-format."""
    failures = 0
    for check in ("layers", "sizes", "readmes", "requirements"):
        failures += run([python(), f"tools/lint/{check}.py"], check=False) != 0
    paths = ["python", "tools", "tools/dev", "test", "benchmarks", "docs", "setup.py"]
    failures += (
        run(
            [tool("ruff"), "check", "--quiet", "--output-format=concise", *paths],
            check=False,
        )
        != 0
    )
    failures += run([python(), "tools/lint/format.py"], check=False) != 0
    say("lint: clean" if not failures else f"lint: {failures} checks failed")
    return int(failures > 0)


def _gtest(sanitize: str | None, settings: dict[str, str] | None = None) -> Counts:
    tree = cmake.build_dir(sanitize)
    cmake.build(tree, sanitize=sanitize, tests=True)
    binary = tree / "bin" / "taeda_tests"
    if not binary.exists():
        raise Failure("test/cpp holds no *_test.cpp")
    suppressions = ROOT / "test" / "cpp" / "tsan.supp"
    env = {
        # Absurd sizes are for the allocator to refuse, as malloc does.
        "ASAN_OPTIONS": "detect_leaks=1:strict_init_order=1"
        ":allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1"
        ":allocator_may_return_null=1",
        **(settings or {}),
    }
    if suppressions.exists():
        env["TSAN_OPTIONS"] += f":suppressions={suppressions}"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        command = [binary, "--gtest_brief=1", f"--gtest_output=xml:{report}"]
        status = run(command, env=env, check=False, timeout=LIMIT_SECONDS)
        return _read_junit(report, status)


def _crash_stack() -> pathlib.Path:
    """The library by which test programs show the C stack of a crash."""
    source = ROOT / "tools" / "devtool" / "crash_stack.cpp"
    built = cmake.build_dir() / "crash_stack.so"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra"]
        run([os.environ.get("CXX", "c++"), *flags, source, "-o", built])
    return built


def _unfinished(running: pathlib.Path) -> list[str]:
    """The tests that were running, which test/python/conftest.py notes."""
    return sorted(f"did not end: {file.read_text()}" for file in running.iterdir())


def _pytest(
    paths: Sequence[str],
    env: dict[str, str],
    workers: int = 0,
    interpreter: str = "",
) -> Counts:
    """Tests in one process, or file by file in so many workers."""
    spread = ["-n", str(workers), "--dist=loadfile"] if workers > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        command = [interpreter or python(), "-m", "pytest", f"--junitxml={report}"]
        command += [*spread, *paths]
        running = pathlib.Path(folder, "running")
        running.mkdir()
        env = {
            "TAEDA_CRASH_STACK": str(_crash_stack()),
            "TAEDA_RUNNING_TESTS": str(running),
            **env,
        }
        try:
            status = run(command, env=env, check=False, timeout=LIMIT_SECONDS)
        except Failure as failure:
            say(f"FAILED: {failure}")
            return Counts(failed=1, names=_unfinished(running))
        return _read_junit(report, status)


def _build() -> None:
    tree = cmake.build_dir()
    cmake.build(tree, tests=True)
    cmake.link_into_package(tree)


def section_lint() -> Counts:
    """layer arrows, sizes, READMEs, ruff, clang-format"""
    return _status(lint() == 0)


def _silent(command: Sequence[str | pathlib.Path]) -> bool:
    """Runs a program that prints a line per check; shows them only on failure."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    say(f"{pathlib.Path(words[0]).name}: exit status {done.returncode}")
    if done.returncode:
        print(done.stdout[-8000:] + done.stderr[-2000:], flush=True)
    return done.returncode == 0


def _isa_levels() -> list[str]:
    """The levels that this processor runs, lowest first."""
    flags = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    needed = {"default": "fpu", "avx2": "avx2", "avx512": "avx512bw"}
    return [level for level, flag in needed.items() if flag in flags]


def section_cpp() -> Counts:
    """C++ tests, and the accuracy of the scalar math at every ISA level"""
    counts = _gtest(None)
    for level in _isa_levels():
        for program in sorted((cmake.build_dir() / "bin").glob(f"accuracy_*_{level}")):
            counts += _status(_silent([program, ACCURACY_SAMPLES]))
    return counts


def section_python() -> Counts:
    """Python tests"""
    _build()
    env = {"PYTHONPATH": str(ROOT / "python")}
    return _pytest(["test/python"], env, workers=cmake.jobs())


def section_capture() -> Counts:
    """capture and smoke tests on the other supported Pythons that are installed"""
    _build()
    counts = Counts()
    for version, interpreter in interpreters.others().items():
        if interpreter is None:
            say(f"CPython {version}: not installed, nothing is tested on it")
            counts.skipped += 1
            continue
        own, env = interpreters.build_modules(version, interpreter)
        counts += _pytest([SMOKE, CAPTURE], env, cmake.jobs(), own)
    return counts


def section_typing() -> Counts:
    """mypy over the stubs, the examples and a typed program"""
    _build()
    stubs = sorted(str(path) for path in cmake.PACKAGE.rglob("*.pyi"))
    checked = [*stubs, "docs/examples", "test/typing"]
    return _status(run([tool("mypy"), *checked], check=False) == 0)


def section_address() -> Counts:
    """C++ tests, smoke tests, hostile files under address and undefined sanitizer"""
    counts = _gtest("address")
    env = sanitizer_env(str(cmake.overlay(cmake.build_dir("address"))))
    counts += _pytest([SMOKE], env)
    for name in FUZZERS:
        command = [python(), f"test/fuzz/{name}.py", f"--seconds={FUZZ_SECONDS}"]
        status = run(command, env=env, check=False, timeout=LIMIT_SECONDS)
        counts += _status(status == 0)
        counts.names += [name] if status else []
    return counts


def section_thread() -> Counts:
    """C++ tests under thread sanitizer"""
    return _gtest("thread")


def section_isa() -> Counts:
    """C++ and smoke tests at the lower ISA levels of this processor"""
    _build()
    symbols = [python(), "tools/lint/isa_symbols.py", cmake.build_dir()]
    counts = _status(run(symbols, check=False) == 0)
    for level in _isa_levels()[:-1]:
        env = {"TAEDA_CPU_CAPABILITY": level, "PYTHONPATH": str(ROOT / "python")}
        say(f"TAEDA_CPU_CAPABILITY={level}")
        counts += _gtest(None, env)
        counts += _pytest([SMOKE], env)
    return counts


def section_wheel() -> Counts:
    """isolated `pip install .`, the wheel's libraries and licences, its smoke test"""
    return _status(package.check_isolated())


def section_pythons() -> Counts:
    """the wheel section for every supported Python (only when named)"""
    counts = Counts()
    for version, interpreter in interpreters.installed().items():
        say(f"CPython {version}: {interpreter}")
        counts += _status(package.check_isolated(interpreter))
    return counts


def section_ecosystem() -> Counts:
    """packages from PyPI and programs on them, as on PyTorch (only when named)"""
    _build()
    counts = Counts()
    for verdict in ecosystem.check():
        counts += _status(verdict)
    return counts


SECTIONS: dict[str, Callable[[], Counts]] = {
    name.removeprefix("section_"): function
    for name, function in list(globals().items())
    if re.fullmatch(r"section_\w+", name)
}


# One builds everything once per Python, the other installs many packages, hence not
# part of a plain run.
ONLY_NAMED = ("pythons", "ecosystem")


def describe() -> str:
    """The sections, one a line."""
    return "\n".join(f"{n:8} {f.__doc__}" for n, f in SECTIONS.items())


def run_sections(names: Sequence[str]) -> int:
    """Runs the named sections (all, where none is named); 1 when anything failed."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise Failure(f"no such section: {' '.join(unknown)}\n{describe()}")
    total = Counts()
    lines = []
    keep_cores()
    for name in names or [n for n in SECTIONS if n not in ONLY_NAMED]:
        say(f"== {name}: {SECTIONS[name].__doc__}")
        with Timer() as timer:
            try:
                counts = SECTIONS[name]()
            except Failure as failure:
                say(f"FAILED: {failure}")
                counts = Counts(failed=1)
        if counts.failed:
            show_cores()
        total += counts
        lines.append(f"{name:8} {counts} ({timer.seconds:.0f} s)")
        lines += [f"         {failed}" for failed in counts.names[:NAMED_FAILURES]]
    for line in lines:
        say(line)
    print(f"total: {total}", flush=True)
    if summary := os.environ.get("TAEDA_SUMMARY"):
        with open(summary, "a") as file:
            file.write("".join(f"{line}\n" for line in [*lines, f"total: {total}"]))
    return int(total.failed > 0)
