"""Broken operator records give a CodegenError with a place, never another exception."""

from __future__ import annotations

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from harness import main, mutate

from tools.codegen.errors import CodegenError
from tools.codegen.records import load_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "aten" / "ops").glob("*.yaml"))


def _some_records(source: random.Random) -> str:
    """A few neighbouring records of one file: small inputs fuzz quicker."""
    blocks = source.choice(FILES).read_text().split("\n- name:")
    at = source.randrange(len(blocks))
    joined = "\n- name:".join(blocks[at : at + 2])
    return joined if joined.lstrip().startswith(("-", "#")) else "- name:" + joined


def attempt(source: random.Random) -> bool:
    """Loads one mutated text; True when it is still a valid list of records."""
    data = mutate(_some_records(source).encode(), source)
    try:
        load_text(data.decode("utf-8", "replace"), "fuzzed.yaml")
    except CodegenError as error:
        if "fuzzed.yaml" not in str(error):
            raise AssertionError(f"no place in: {error}") from error
        return False
    return True


if __name__ == "__main__":
    sys.exit(main("fuzz_records", attempt))
