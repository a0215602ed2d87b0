"""`tools/dev records`: the records as the built library has them, as one JSON list."""

from __future__ import annotations

import subprocess

from devtool import cmake
from devtool.shell import Failure, python

# Runs where the package is: this tool itself needs nothing that is built.
_PROGRAM = """
import sys
from taeda import _C
wanted = set(sys.argv[1:])
rows = [
    _C._op_record(name, overload)
    for name, overload, _ in _C._op_schemas()
    if not wanted or wanted & {name, f"{name}.{overload or 'default'}"}
]
print("[" + ",\\n".join(rows) + "]")
sys.exit(bool(wanted) and not rows)
"""


def main(names: list[str]) -> int:
    """Prints the records of some operators (`add` or `add.Tensor`), or of all.

    Returns:
        1 where names are given and none of them is an operator's.
    """
    if not (cmake.PACKAGE / "lib").exists():
        raise Failure("nothing is built yet; run tools/dev build")
    command = [python(), "-c", _PROGRAM, *names]
    return subprocess.call(command, cwd=cmake.PACKAGE.parent)
