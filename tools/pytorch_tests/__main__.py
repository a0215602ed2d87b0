"""Runs files of PyTorch's tests on both libraries: see README.md."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from . import sources

ROOT = Path(__file__).resolve().parents[2]


def run(
    library: str, file: str, options: list[str], limit: int, test_limit: int
) -> dict[str, dict]:
    """The outcomes of a file's tests, by name.

    Args:
        library: "here" or "torch".
        options: of pytest.
        limit: seconds, after which what has ended counts.
        test_limit: seconds, after which a test has failed.

    PyTorch's outcomes are kept for every checkout, where the file ran to its end.
    """
    tests = sources.folder()
    kept = tests.parents[1] / "outcomes"
    kept.mkdir(exist_ok=True)
    own = [str(ROOT)] if library == "here" else []
    mark = hashlib.sha1(" ".join([*own, *options]).encode()).hexdigest()[:8]
    path = kept / f"{library}-{file.replace('/', '-')}-{mark}.jsonl"
    if library == "torch" and path.exists():
        return _read(path)
    # A run that is killed, with this process or alone, leaves no whole outcomes.
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    places = [str(ROOT), str(tests)]
    if library == "here":
        places.insert(1, str(ROOT / "python"))
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "TESTED_LIBRARY": library,
        "TEST_OUTCOMES": str(part),
        "TEST_LIMIT": str(test_limit),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "--noconftest", "-q", "-p"]
    command += ["tools.pytorch_tests.plugin", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-p", "no:logging"]  # LoggingTensor's records are no messages
    command += ["-o", "addopts=", "--rootdir", str(tests), str(tests / file), *options]
    log = path.with_suffix(".log")
    with log.open("w") as out:
        try:
            code = subprocess.run(
                command, cwd=tests, env=env, stdout=out, stderr=out, timeout=limit
            ).returncode
        except subprocess.TimeoutExpired:
            code = "the limit of time"
    if code not in (0, 1):
        print(f"{library} {file}: pytest ended with {code}, see {log}")
    rows = _read(part)
    if code in (0, 1) and part.exists():
        part.replace(path)
    return rows


def _read(path: Path) -> dict[str, dict]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[str, dict] = {}
    for row in rows:
        before = found.get(row["test"])
        if before is None or before["outcome"] == "passed":
            found[row["test"]] = row
    return found


def compare(ours: dict[str, dict], theirs: dict[str, dict]) -> list[dict]:
    """Tests that pass on PyTorch and not here."""
    found = []
    for name, row in theirs.items():
        if row["outcome"] != "passed":
            continue
        mine = ours.get(name)
        if mine is None:
            found.append({"test": name, "outcome": "absent", "why": ""})
        elif mine["outcome"] != "passed":
            found.append(mine)
    return found


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(prog="python -m tools.pytorch_tests")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--only", choices=("here", "torch"))
    parser.add_argument("--limit", type=int, default=1200)
    parser.add_argument("--test-limit", type=int, default=120)
    parser.add_argument("--workers", type=int, default=0)
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    args, options = parser.parse_args(given[:cut]), given[cut + 1 :]
    if args.workers:
        options += ["-n", str(args.workers)]
    for file in args.files:
        sides = {}
        for library in ("torch", "here"):
            if args.only in (None, library):
                sides[library] = run(
                    library, file, options, args.limit, args.test_limit
                )
        if args.only:
            rows = sides[args.only].values()
            lacking = [
                row for row in rows if row["outcome"] not in ("passed", "skipped")
            ]
            print(f"== {file}: {dict(Counter(row['outcome'] for row in rows))}")
        else:
            lacking = compare(sides["here"], sides["torch"])
            count = sum(r["outcome"] == "passed" for r in sides["torch"].values())
            print(f"== {file}: {count - len(lacking)} of {count}")
        for row in lacking:
            print(f"{row['outcome']} {row['test']}: {row['why'][:160]}")


if __name__ == "__main__":
    main()
