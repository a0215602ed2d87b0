#!/usr/bin/env python3
"""Includes follow the layers, and only csrc/python sees Python.

Checked for c10, aten and csrc:
- includes of our own read <taeda/LAYER/...>, name a file that exists, and point to
  the same layer or one below;
- Python.h and pybind11 only in csrc/python, which nothing below includes, and in the
  folders of BESIDE, the extension modules that stand beside it;
- fmt in .cpp files only (it costs every includer a quarter of a second);
- OpenBLAS and oneDNN only in the plugin folders.
And in python/taeda: no import of torch.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys

from tree import CPP, ROOT, files, report

RANK = {"c10": 0, "aten": 1, "csrc": 2, "python": 3}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PYTHON = re.compile(r"^(Python\.h|pybind11/|frameobject\.h|internal/pycore)")
BESIDE = (
    ("csrc", "compiler", "capture"),
    ("csrc", "compiler", "bindings"),
    ("csrc", "distributed", "bindings"),
    ("csrc", "profiler", "bindings"),
    ("csrc", "boxed"),
    ("csrc", "dlpack"),
    ("csrc", "gpu"),
    ("csrc", "symbolic"),
    ("csrc", "extension"),
)
BLAS = re.compile(r"(cblas|f77blas|lapacke?|dnnl|openblas)[\w.]*$|^oneapi/")
# Generated headers above aten, by their first folder below gen/.
GEN_RANK = {"autograd": 2, "csrc": 2, "python": 3}


def layer_of(path: pathlib.Path) -> str | None:
    """The layer of a source file; None for files outside of the layers."""
    if path.parts[:2] == ("csrc", "python") or any(
        path.parts[: len(b)] == b for b in BESIDE
    ):
        return "python"
    first = path.parts[0]
    return first if first in RANK else None


def rank_of_include(target: str) -> int | None:
    """The rank of <taeda/...>; None for the root headers of the front end."""
    parts = target.split("/")[1:]
    if parts[0] == "gen":
        return GEN_RANK.get(parts[1], 1)
    if parts[:2] == ["csrc", "python"] or any(
        tuple(parts[: len(b)]) == b for b in BESIDE
    ):
        return RANK["python"]
    return RANK.get(parts[0])


def check_own(layer: str, target: str) -> str | None:
    """What is wrong with an include of <taeda/...> in a layer."""
    rank = rank_of_include(target)
    if rank is None:
        return (
            None
            if layer in ("csrc", "python")
            else (f"<{target}> is the front end's; {layer} may not include it")
        )
    if rank > RANK[layer]:
        return f"{layer} may not include <{target}>"
    place = target.split("/", 1)[1]
    if not place.startswith("gen/") and not (ROOT / place).exists():
        return f"<{target}> does not exist"
    return None


def may_quote(path: pathlib.Path) -> bool:
    """Whether a file may include its neighbours by quotes: the math headers are handed
    to NVRTC and compiled graphs as they stand, plugin headers are never installed."""
    return path.parts[:2] == ("aten", "math") or "plugin" in path.parts


def check_line(path: pathlib.Path, layer: str, line: str) -> str | None:
    """What is wrong with one line of a source file."""
    match = INCLUDE.match(line)
    if not match:
        return None
    mark, target = match.groups()
    if mark == '"' and may_quote(path) and (ROOT / path.parent / target).exists():
        return None
    if mark == '"':
        return f'write <taeda/...> for "{target}"'
    if target.startswith("taeda/"):
        return check_own(layer, target)
    if PYTHON.search(target) and layer != "python":
        return f"only csrc/python may include <{target}>"
    if target.startswith("fmt/") and path.suffix != ".cpp":
        return f"<{target}> belongs into .cpp files"
    if BLAS.search(target) and "plugin" not in path.parts:
        return f"only plugin folders may include <{target}>"
    return None


def check_cpp(path: pathlib.Path) -> list[str]:
    """Findings of one C++ file."""
    layer = layer_of(path)
    if layer is None:
        return []
    found = []
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        wrong = check_line(path, layer, line)
        if wrong:
            found.append(f"{path}:{number}: {wrong}")
    return found


def check_python(path: pathlib.Path) -> list[str]:
    """Imports of torch in the package."""
    found = []
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0] == "torch":
                found.append(f"{path}:{node.lineno}: the package imports {name}")
    return found


def main() -> int:
    """Checks every file; 1 when there are findings."""
    errors: list[str] = []
    for path in files(*CPP):
        errors += check_cpp(path)
    for path in files(".py"):
        if path.parts[:2] == ("python", "taeda"):
            errors += check_python(path)
    return report("layers", errors)


if __name__ == "__main__":
    sys.exit(main())
