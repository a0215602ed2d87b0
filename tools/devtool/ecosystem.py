"""Other people's packages, unmodified, on this library: `tools/dev test ecosystem`.

The table is test/ecosystem/packages.toml. `--reference` writes what real PyTorch
prints for its programs, which every other run must print too, and shows what the
named selections of tests come to there:

    python tools/devtool/ecosystem.py --reference [PROGRAM or SELECTION...]
"""

from __future__ import annotations

import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from devtool.shell import ROOT, Failure, run, say

FOLDER = ROOT / "test" / "ecosystem"
HOME = ROOT / ".cache" / "ecosystem"
LIMIT_SECONDS = 300
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)


def table() -> dict:
    """The packages, programs and test selections."""
    return tomllib.loads((FOLDER / "packages.toml").read_text())


def agree(found: str, expected: str, relative: float, absolute: float) -> bool:
    """Whether two printed texts have equal words and numbers that are close.

    Spaces are left out of the comparison: how wide a tensor is printed depends on
    the last digit of its numbers. Whole numbers have to be equal.
    """
    if _NUMBER.sub("#", found).split() != _NUMBER.sub("#", expected).split():
        return False
    pairs = zip(_NUMBER.findall(found), _NUMBER.findall(expected), strict=True)
    return all(
        f == e
        or (
            not (f.lstrip("+-").isdigit() and e.lstrip("+-").isdigit())
            and math.isclose(float(f), float(e), rel_tol=relative, abs_tol=absolute)
        )
        for f, e in pairs
    )


def environment(wanted: list[str]) -> pathlib.Path:
    """The Python of an environment with exactly these packages, and no PyTorch."""
    own = HOME / "env" / "bin" / "python"
    stamp = HOME / "env" / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
        run([sys.executable, "-m", "venv", "--clear", HOME / "env"])
        pip = [own, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        # Without the packages that they require: those would bring PyTorch.
        run([*pip, "--no-deps", *wanted])
        stamp.write_text("\n".join(wanted))
    return own


def _reference_folder() -> pathlib.Path:
    """A folder with PyTorch alone, from the environment of this process."""
    folder = HOME / "torch"
    folder.mkdir(parents=True, exist_ok=True)
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    for name in ("torch", "functorch", "torchgen", "torch-*.dist-info"):
        for place in site.glob(name):
            link = folder / place.name
            link.unlink(missing_ok=True)
            link.symlink_to(place)
    if not (folder / "torch").exists():
        raise Failure(f"PyTorch is not installed in {site}")
    return folder


def _start(own: pathlib.Path, rest: list[str], reference: bool, env: dict) -> str:
    """What a program prints; its errors are shown where it fails."""
    path = _reference_folder() if reference else ROOT / "python"
    prefix = [] if reference else ["-m", "taeda.as_torch"]
    settings = {"PYTHONPATH": str(path), "OMP_NUM_THREADS": "1", **env}
    try:
        done = subprocess.run(
            [str(own), *prefix, *rest],
            env={**os.environ, **settings},
            cwd=HOME,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"timed out after {LIMIT_SECONDS} s"
    if done.returncode and "pytest" not in rest:
        print(done.stderr[-2000:], flush=True)
        return f"{done.stdout}exit status {done.returncode}\n"
    return done.stdout


def _outcomes(printed: str) -> dict[str, int]:
    """The counts in the last line that pytest prints."""
    last = printed.strip().rpartition("\n")[2]
    found = re.findall(r"(\d+) (passed|failed|skipped|errors?)", last)
    return {kind: int(count) for count, kind in found}


def check_programs(own: pathlib.Path, programs: list[dict]) -> list[bool]:
    """Whether each program prints what PyTorch prints."""
    verdicts = []
    for program in programs:
        name = program["name"]
        found = _start(own, [str(FOLDER / "programs" / f"{name}.py")], False, {})
        expected = (FOLDER / "expected" / f"{name}.txt").read_text()
        limits = program.get("relative", 1e-3), program.get("absolute", 1e-4)
        verdicts.append(agree(found, expected, *limits))
        say(f"{name}: {'as PyTorch' if verdicts[-1] else 'DIFFERS'}")
        if not verdicts[-1]:
            print(f"found:\n{found}\nexpected:\n{expected}", flush=True)
    return verdicts


def _source(own: pathlib.Path, requirement: str) -> pathlib.Path:
    """The unpacked source of a release, for tests that no wheel carries."""
    folder = HOME / "sources" / requirement
    if not folder.exists():
        pip = [own, "-m", "pip", "--disable-pip-version-check", "download", "-qq"]
        fresh = folder.with_name(f"{requirement}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        name = requirement.partition("==")[0]  # what builds it may be a wheel
        run([*pip, "--no-deps", "--no-binary", name, "-d", fresh, requirement])
        (archive,) = fresh.glob("*.tar.gz")
        shutil.unpack_archive(archive, fresh, filter="data")
        archive.unlink()
        fresh.rename(folder)
    (unpacked,) = folder.iterdir()
    return unpacked


def run_tests(own: pathlib.Path, selection: dict, reference: bool) -> dict[str, int]:
    """The counts that a selection of a package's own tests comes to."""
    if "source" in selection:
        site = _source(own, selection["source"])
    else:
        site = next((HOME / "env" / "lib").glob("python*/site-packages"))
    paths = [str(site / path) for path in selection["paths"]]
    left_out = [f"--deselect={name}" for name in selection.get("left_out", [])]
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={site}"]
    rest = [*words, *left_out, *paths]
    return _outcomes(_start(own, rest, reference, selection.get("env", {})))


def check_tests(own: pathlib.Path, selections: list[dict]) -> list[bool]:
    """Whether each selection of a package's own tests has its pinned counts."""
    verdicts = []
    for selection in selections:
        found = run_tests(own, selection, False)
        verdicts.append(found == selection["counts"])
        say(f"{selection['name']}: {found}, pinned {selection['counts']}")
    return verdicts


def check() -> list[bool]:
    """One verdict for each program and each selection of tests."""
    found = table()
    own = environment(found["requirements"])
    verdicts = check_programs(own, found["program"])
    return verdicts + check_tests(own, found["tests"])


def write_reference(names: list[str]) -> None:
    """Writes what the programs print on real PyTorch."""
    found = table()
    own = environment(found["requirements"])
    for selection in found["tests"]:
        if selection["name"] in names:
            counts = run_tests(own, selection, True)
            say(f"{selection['name']}: {counts}, pinned {selection['counts']}")
    for program in found["program"]:
        name = program["name"]
        if not names or name in names:
            path = str(FOLDER / "programs" / f"{name}.py")
            printed = _start(own, [path], True, {})
            if "exit status" in printed or "timed out" in printed:
                raise Failure(f"{name} fails on PyTorch")
            (FOLDER / "expected" / f"{name}.txt").write_text(printed)
            say(f"{name}: {len(printed.splitlines())} lines")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--reference"]:
        sys.exit(__doc__)
    write_reference(sys.argv[2:])
