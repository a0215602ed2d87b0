#!/usr/bin/env python3
"""What the build requires is included: each library's header in the folder in which
the design uses it. A requirement that no source needs is to be dropped."""

from __future__ import annotations

import re
import sys
import tomllib

from tree import CPP, ROOT, files, report

# Build requirement: the headers that say it is used, and the folder that includes them.
HEADERS = {
    "pybind11": (r"pybind11/\w+\.h", "csrc/python"),
    "cmeel-fmt": (r"fmt/\w+\.h", "c10"),
    "cmeel-eigen": (r"Eigen/\w+", "aten/native/linalg"),
    "onednn-devel-cpu-gomp": (r"(oneapi/dnnl/)?dnnl\w*\.hp?p?", "aten/native/dnn"),
}
# Those without headers, and the file that names what is used of them.
NAMED = {
    "scipy-openblas32": ("scipy_openblas", "third_party/FindOpenBLAS.cmake"),
    "onednn-cpu-gomp": ("libdnnl.so", "third_party/FindOneDNN.cmake"),
    "pyyaml": ("import yaml", "tools/codegen/yaml_fields.py"),
    "setuptools": ("from setuptools", "setup.py"),
    "cmake": ('_program("cmake")', "tools/devtool/cmake.py"),
    "ninja": ('_program("ninja")', "tools/devtool/cmake.py"),
}


def required() -> set[str]:
    """The names of the build requirements."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        wanted = tomllib.load(file)["build-system"]["requires"]
    return {re.match(r"[\w.-]+", text).group().lower() for text in wanted}


def included(pattern: str, folder: str) -> bool:
    """Whether a source below a folder includes such a header."""
    line = re.compile(rf"^\s*#\s*include\s*<{pattern}>", re.MULTILINE)
    sources = (p for p in files(*CPP) if p.is_relative_to(folder))
    return any(line.search((ROOT / path).read_text()) for path in sources)


def main() -> int:
    """Checks every build requirement; 1 when there are findings."""
    names = required()
    errors = [
        f"pyproject.toml: nothing says where {n} is used"
        for n in sorted(names - set(HEADERS) - set(NAMED))
    ]
    for name in sorted(names & set(HEADERS)):
        pattern, folder = HEADERS[name]
        if not included(pattern, folder):
            errors.append(f"{folder}: no <{pattern}>, but {name} is required")
    for name in sorted(names & set(NAMED)):
        text, file = NAMED[name]
        if text not in (ROOT / file).read_text():
            errors.append(f"{file}: no {text!r}, but {name} is required")
    for name in sorted((set(HEADERS) | set(NAMED)) - names):
        errors.append(f"pyproject.toml: {name} is used but not required")
    return report("requirements", errors)


if __name__ == "__main__":
    sys.exit(main())
