"""`tools/dev demo`: build, then train the small GPT of docs/examples."""

from __future__ import annotations

from collections.abc import Sequence

from devtool import cmake
from devtool.shell import ROOT, Failure, python, run


def main(arguments: Sequence[str]) -> int:
    """Builds and runs the example; further arguments go to it."""
    example = ROOT / "docs" / "examples" / "char_gpt.py"
    if not example.exists():
        raise Failure(f"{example.relative_to(ROOT)} is missing")
    tree = cmake.build_dir()
    cmake.build(tree)
    cmake.link_into_package(tree)
    return run(
        [python(), example, *arguments],
        env={"PYTHONPATH": str(ROOT / "python")},
        check=False,
    )
