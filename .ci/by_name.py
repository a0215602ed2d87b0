#!/usr/bin/env python3
"""Holds every named class, optimizer, schedule and model to the reference.

`by_name.py BASELINE RESULTS...` reads what `conform TOOL --out RESULTS` wrote. A line
of the baseline names a subject and how many checks it has at least; all must pass but
those that follow it, indented, as `case / check`. A subject that the baseline does not
name, or that the results lack, fails too. With `--write` the baseline is written.

On some processors the reference's float32 square root is not rounded correctly (its
math library off Intel); its differentiable Adam in double precision is then itself
wrong in the tenth digit, and those cases are left out, counted, and named here. Where
its root is right they are judged like the others.

A loss in training that differs is excused where ours is nearer to what the reference
itself gets in double precision than the reference is: a bias before batch norm has a
gradient of rounding errors alone, of which Adam makes steps of full length.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy
import torch

# What follows the class in a unit's name: dtypes, and the modes of modules.
VARIANTS = {"float32", "float64", "bfloat16", "complex64", "complex128"}
VARIANTS |= {"train", "eval"}


def root_is_exact() -> bool:
    """Whether the reference's float32 square root is the nearest number."""
    values = torch.linspace(0, 1, 10_001)
    return bool((torch.sqrt(values).numpy() == numpy.sqrt(values.numpy())).all())


def blamed_on_root(record: dict) -> bool:
    """A case whose reference goes through a float32 root in double precision."""
    name, _, dtype = record["unit"].removeprefix("optim.").partition(".")
    adam = name in ("Adam", "AdamW") and dtype in ("float64", "complex128")
    return adam and "differentiable" in record["case"]


def double_loss(unit: str, where: str) -> float:
    """What the reference gets in double precision, at a step or in evaluation."""
    from conform.train.tool import STEPS, Training

    name, optimizer = unit.split(".")[:2]
    torch.manual_seed(3)  # as the judge draws its parameters
    start = Training(torch, name, optimizer, "float32").model.state_dict()
    training = Training(torch, name, optimizer, "float64")
    training.start(start)
    losses = [training.step(i) for i in range(STEPS)]
    return training.evaluate() if where == "eval" else losses[int(where) - 1]


def nearer_in_double(record: dict) -> bool:
    """Whether our loss is nearer to the reference's own in double precision."""
    detail = record.get("detail", "")
    found = re.fullmatch(r"loss at (\w+): (\S+) instead of (\S+) .*", detail)
    if record["tool"] != "train" or found is None:
        return False
    where, ours, theirs = found.groups()
    exact = double_loss(record["unit"], where)
    nearer = abs(float(ours) - exact) < abs(float(theirs) - exact)
    if nearer:
        print(f"{record['unit']}: {detail}; in double precision {exact}")
    return nearer


def subject(record: dict) -> str:
    """The class, schedule or program that a check is about, after its tool."""
    parts = [part for part in record["unit"].split(".") if part not in VARIANTS]
    return f"{record['tool']} {'.'.join(parts)}"


def check(record: dict) -> str:
    return f"{record['case']} / {record['check']}"


def read_results(paths: list[str]) -> dict[str, list[dict]]:
    """The checks that count, by subject."""
    found = defaultdict(list)
    for path in paths:
        with open(path) as file:
            for record in map(json.loads, filter(str.strip, file)):
                if record["status"] != "skip" and not record.get("soft"):
                    found[subject(record)].append(record)
    return dict(found)


def read_baseline(path: str) -> tuple[dict[str, int], dict[str, set[str]]]:
    """Checks by subject, and those among them that are known not to pass."""
    least: dict[str, int] = {}
    known: dict[str, set[str]] = defaultdict(set)
    name = ""
    with open(path) as file:
        for line in filter(str.strip, file):
            if line.startswith(" "):
                known[name].add(line.strip())
            else:
                name, _, count = line.strip().rpartition(" ")
                least[name] = int(count)
    return least, known


def write_baseline(
    path: str, results: dict[str, list[dict]], excused: Callable[[dict], bool]
) -> None:
    with open(path, "w") as file:
        for name, records in sorted(results.items()):
            bad = {check(r) for r in records if r["status"] != "pass"}
            bad -= {check(r) for r in records if excused(r)}
            lines = [f"{name} {len(records)}", *(f"  {c}" for c in sorted(bad))]
            file.write("\n".join(lines) + "\n")


def judge(
    least: dict[str, int],
    known: dict[str, set[str]],
    results: dict[str, list[dict]],
    excused: Callable[[dict], bool],
) -> list[str]:
    """A line for everything that breaks the baseline."""
    lines = [f"{name}: not in the baseline" for name in sorted({*results} - {*least})]
    for name, count in sorted(least.items()):
        records = results.get(name, [])
        if len(records) < count:
            lines.append(f"{name}: {len(records)} checks, the baseline has {count}")
        for r in records:
            fails = r["status"] != "pass" and check(r) not in known.get(name, ())
            if fails and not excused(r):
                detail = f"{check(r)}: {r['status']} {r.get('detail', '')}"
                lines.append(f"{name}: {detail}"[:300])
    return lines


def main(arguments: list[str]) -> int:
    write = arguments[:1] == ["--write"]
    baseline, *paths = arguments[write:]
    results = read_results(paths)
    by_root = (lambda r: False) if root_is_exact() else blamed_on_root

    def excused(record: dict) -> bool:
        return by_root(record) or nearer_in_double(record)

    if write:
        write_baseline(baseline, results, excused)
        return 0
    records = [r for subject in results.values() for r in subject]
    if out := sum(r["status"] != "pass" and by_root(r) for r in records):
        print(
            f"{out} checks of differentiable Adam left out: the reference's float32 "
            "square root is not exact on this processor"
        )
    lines = judge(*read_baseline(baseline), results, excused)
    statuses = dict(Counter(r["status"] for r in records))
    print("\n".join([*lines, f"{len(results)} classes and programs, {statuses}"]))
    return int(bool(lines) or not results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
