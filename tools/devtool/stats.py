"""`tools/dev stats`: what the records cost, against ceilings."""

from __future__ import annotations

import collections
import pathlib
import sys

from devtool import cmake
from devtool.shell import ROOT, Failure, output, say

# Ceilings. Code and compile time per pointwise record and ISA level are the design's
# budget; those for generated text are a quarter above what `stats` showed in the first
# slice.
MAX_LINES_PER_RECORD = 220.0
MAX_KBYTES_PER_RECORD = 13.0
MAX_KERNEL_KBYTES = 35.0
MAX_KERNEL_SECONDS = 0.8
# The contract of kernels and formulas (docs/design/records.md).
MAX_OPAQUE_RECORDS = 120
MAX_HELPER_RECORDS = 8
MAX_FOREACH_FILES = 0
MIN_FORMULA_PERCENT = 45.0
# Everything else is written by hand: composites and kernels.
BY_HAND = ("composite", "kernel")
# A file that took less came out of ccache: its time says nothing.
LEAST_COMPILE_SECONDS = 0.3


def _load() -> list:
    sys.path.insert(0, str(ROOT))
    from tools.codegen.records import load_records

    return load_records(ROOT / "aten" / "ops")


def _records(records: list) -> tuple[int, int]:
    """How many records there are, and how many of them get generated kernels."""
    families = [{overload.family for overload in r.overloads} for r in records]
    return len(records), sum(bool(f & {"pointwise", "reduction"}) for f in families)


def _is_kernel(overload) -> bool:
    """Whether it has a function in native; of index maps some are composites."""
    return hasattr(overload.body, "axes")


def axes_lines(records: list) -> list[str]:
    """How many overloads of kernels have axes, and why the others have none."""
    overloads = [o for r in records for o in r.overloads if _is_kernel(o)]
    reasons = collections.Counter(o.body.axes.opaque for o in overloads)
    named = reasons.pop("", 0)
    opaque = f"opaque: {reasons.total()}"
    ruled = sum(o.body.shape is not None for o in overloads)
    head = f"kernel overloads: {len(overloads)}, with a shape rule: {ruled}"
    head += f", with axes: {named}, {opaque}"
    return [head, *(f"  {n} opaque: {why}" for why, n in reasons.most_common())]


def _opaque(overload) -> bool:
    return _is_kernel(overload) and bool(overload.body.axes.opaque)


def _meaning(overload):
    """The overload that says what is computed: of lists, that of their elements."""
    return overload.body.element if overload.family == "foreach" else overload


def helper_records(records: list) -> list[str]:
    """Operators that only formulas and composites call: private, under `_` names."""
    return [r.name for r in records if r.python.private and r.name.startswith("_")]


def contract(records: list) -> list[tuple[str, float, float, bool]]:
    """(what, how many, the bar, whether it is a least) of what records still lack."""
    overloads = [o for r in records for o in r.overloads]
    kernels = [o.body for o in overloads if _is_kernel(o)]
    formulas = [o for o in overloads if _meaning(o).family not in BY_HAND]
    opaque = [r for r in records if any(map(_opaque, r.overloads))]
    bare = [k for k in kernels if k.axes is None]
    foreach = list((ROOT / "aten" / "ops").glob("foreach*.yaml"))
    percent = 100 * len(formulas) / len(overloads)
    return [
        ("opaque kernel records", len(opaque), MAX_OPAQUE_RECORDS, False),
        ("kernel overloads without axes", len(bare), 0, False),
        ("helper records", len(helper_records(records)), MAX_HELPER_RECORDS, False),
        ("foreach YAML files", len(foreach), MAX_FOREACH_FILES, False),
        ("percent of overloads by formula", percent, MIN_FORMULA_PERCENT, True),
    ]


def family_line(records: list) -> str:
    """How many overloads each family has, those of lists by their elements'."""
    families = collections.Counter(
        " of ".join(dict.fromkeys([o.family, _meaning(o).family]))
        for r in records
        for o in r.overloads
    )
    parts = (f"{name} {count}" for name, count in families.most_common())
    return f"overloads: {families.total()}: {', '.join(parts)}"


def _generated(tree: pathlib.Path) -> list[tuple[str, int, int, int]]:
    """(kind, files, lines, bytes) of the generated text, by first folder."""
    kinds: dict[str, list[int]] = {}
    for path in sorted((tree / "gen").rglob("*")):
        if path.is_file():
            text = path.read_bytes()
            kind = path.relative_to(tree / "gen").parts[0]
            row = kinds.setdefault(kind, [0, 0, 0])
            row[0] += 1
            row[1] += text.count(b"\n")
            row[2] += len(text)
    return [(kind, *row) for kind, row in kinds.items()]


def _kernel_objects(tree: pathlib.Path, isa: str) -> tuple[float | None, int]:
    """Compile seconds (from ninja's log) and code bytes of one level's objects.

    The seconds are None where ccache had some of them.
    """
    prefix = f"CMakeFiles/kernels_{isa}.dir/gen/kernels/"
    log = (tree / ".ninja_log").read_text().splitlines()[1:]
    seconds = {}
    for start, end, _, name, *_ in (line.split("\t") for line in log):
        if name.startswith(prefix):
            seconds[name] = (int(end) - int(start)) / 1000
    sizes = output(["size", *(str(tree / name) for name in seconds)])
    code = sum(int(line.split()[0]) for line in sizes.splitlines()[1:])
    measured = seconds and min(seconds.values()) > LEAST_COMPILE_SECONDS
    return sum(seconds.values()) if measured else None, code


def main() -> int:
    """Prints the figures; 1 when one is over its ceiling."""
    tree = cmake.build_dir()
    if not (tree / "gen").exists():
        raise Failure("nothing is generated yet; run tools/dev build")
    loaded = _load()
    records, kernels = _records(loaded)
    over = []

    def figure(name: str, value: float, ceiling: float, unit: str) -> None:
        mark = "ok" if value <= ceiling else "OVER"
        over.extend([name] if value > ceiling else [])
        say(f"{name}: {value:.2f} {unit} (ceiling {ceiling:g}) {mark}")

    rows = _generated(tree)
    for kind, files, lines, size in rows:
        say(f"gen/{kind}: {files} files, {lines} lines, {size / 1e3:.0f} kB")
    say(f"records: {records}, with generated kernels: {kernels}")
    say(family_line(loaded))
    for line in axes_lines(loaded):
        say(line)
    say("helper records: " + " ".join(helper_records(loaded)))
    for name, value, bar, least in contract(loaded):
        met = value >= bar if least else value <= bar
        over.extend([] if met else [name])
        word = "at least" if least else "at most"
        say(f"{name}: {value:g} ({word} {bar:g}) {'ok' if met else 'OVER'}")
    lines, size = sum(r[2] for r in rows), sum(r[3] for r in rows)
    figure("generated lines per record", lines / records, MAX_LINES_PER_RECORD, "")
    figure(
        "generated text per record", size / records / 1e3, MAX_KBYTES_PER_RECORD, "kB"
    )
    for isa in ("default", "avx2", "avx512"):
        seconds, code = _kernel_objects(tree, isa)
        if seconds is None:
            say(f"kernels {isa}: compile time not measured (ccache)")
        elif kernels:
            name = f"kernels {isa}: compile time per record"
            figure(name, seconds / kernels, MAX_KERNEL_SECONDS, "s")
        if code and kernels:
            name = f"kernels {isa}: code per record"
            figure(name, code / kernels / 1e3, MAX_KERNEL_KBYTES, "kB")
    return int(bool(over))
