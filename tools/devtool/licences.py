"""The licence texts of the libraries inside the wheel.

Which texts there are and where each comes from stands here once: `collect` gathers
them when a wheel is built, and `audit` looks for them in the finished wheel.
"""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import shutil
from collections.abc import Callable

from devtool.shell import ROOT, Failure

# pyproject.toml's license-files names this folder; git does not track it.
FOLDER = ROOT / "third_party" / "licenses"


def _carried(package: str, pattern: str) -> str:
    """The text of the one file of an installed package whose path ends like that."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        raise Failure(f"{package}, a build requirement, is not installed") from None
    found = [file for file in files if re.search(pattern + "$", str(file))]
    if len(found) != 1:
        raise Failure(f"{package}: {pattern} should be one file, found {found}")
    return pathlib.Path(found[0].locate()).read_text(encoding="utf-8")


def _leading_comment(source: str) -> str:
    """What the comment at the top of a C or C++ source says."""
    return source.partition("*/")[0].partition("/*")[2]


# cmeel's packages carry headers alone. fmt's text opens its main header; Eigen's is
# the COPYING.MPL2 of the source distribution (EIGEN_MPL2_ONLY keeps the rest out).
TEXTS: dict[str, Callable[[], str]] = {
    "OpenBLAS.txt": lambda: _carried("scipy-openblas32", r"licenses/LICENSE\.txt"),
    "oneDNN.txt": lambda: _carried("onednn-cpu-gomp", r"dist-info/LICENSE\.txt"),
    "oneDNN-third-party.txt": lambda: _carried(
        "onednn-cpu-gomp", "THIRD-PARTY-PROGRAMS"
    ),
    "pybind11.txt": lambda: _carried("pybind11", "licenses/LICENSE"),
    "fmt.txt": lambda: _leading_comment(_carried("cmeel-fmt", r"fmt/format\.h")),
    "Eigen.txt": lambda: (ROOT / "third_party" / "MPL-2.0.txt").read_text(),
}

# What each text must say: that the right file was found.
PHRASES = {
    "LICENSE": "Taeda",
    "OpenBLAS.txt": "Name: LAPACK",
    "oneDNN.txt": "Apache License",
    "oneDNN-third-party.txt": "XByak",
    "pybind11.txt": "Wenzel Jakob",
    "fmt.txt": "Victor Zverovich",
    "Eigen.txt": "Mozilla Public License Version 2.0",
}

_OURS = ("LICENSE", "fmt.txt")
# Library to the texts that apply to it, headers that were compiled in included.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "_C": (*_OURS, "pybind11.txt"),
    "_capture": ("LICENSE",),
    "_compiler": (*_OURS, "pybind11.txt"),
    "_distributed": ("LICENSE", "pybind11.txt"),
    "_boxed": (*_OURS, "pybind11.txt"),
    "_shapes": (*_OURS, "pybind11.txt"),
    "_cuda": (*_OURS, "pybind11.txt"),
    "_dlpack": (*_OURS, "pybind11.txt"),
    "_profiler": (*_OURS, "pybind11.txt"),
    "libtaeda_gloo.so": ("LICENSE",),
    "libtaeda.so": (*_OURS, "Eigen.txt"),
    "libtaeda_dnn.so": (*_OURS, "oneDNN.txt"),
    "libdnnl.so.3": ("oneDNN.txt", "oneDNN-third-party.txt"),
    "libscipy_openblas.so": ("OpenBLAS.txt",),
}
# Libraries of builds that found something of the system's, and what that is: it is
# opened when it is needed, and who asks for it hears that it is missing.
OPTIONAL = {"libtaeda_gloo.so": "libgloo.so.0"}
# Libraries that only the wheels of one interpreter have (TaedaPython.cmake).
ONLY = {"_capture": "-cp311-"}


def collect(folder: pathlib.Path = FOLDER) -> list[pathlib.Path]:
    """Writes the texts into a folder, which then holds nothing else.

    Raises:
        Failure: a package is absent, or its text is not the expected one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    written = []
    for name, text_of in TEXTS.items():
        text = text_of()
        if PHRASES[name] not in text:
            raise Failure(f"the licence {name} does not mention {PHRASES[name]!r}")
        written.append(folder / name)
        written[-1].write_text(text, encoding="utf-8")
    return written
