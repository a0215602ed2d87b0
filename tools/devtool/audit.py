"""What the shared libraries of a wheel are, need and are licensed under.

    python tools/devtool/audit.py taeda-*.whl

Fails on a library without its licence text, on a dependency from outside that is not
listed here, on a symbol version newer than the stated one, and on a search path for
libraries that leaves the wheel. Reads the files with readelf, which every compiler
brings.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from devtool import licences
from devtool.shell import Failure, output

# What a Linux with a C++ compiler's run-time libraries has. libgomp stays outside on
# purpose: two copies in one process would be two sets of threads.
SYSTEM = frozenset(
    "ld-linux-x86-64.so.2 libc.so.6 libdl.so.2 libgcc_s.so.1 libgomp.so.1 libm.so.6 "
    "libpthread.so.0 libstdc++.so.6".split()
)
# The newest symbol versions that a wheel built with Debian 12's g++ may ask for.
NEWEST = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}


@dataclass
class Library:
    """One ELF file, as readelf describes it."""

    name: str
    bytes: int
    needed: list[str]
    paths: list[str]
    versions: dict[str, tuple[int, ...]]
    texts: list[str] = field(default_factory=list)

    def line(self) -> str:
        newest = [f"{k}_{'.'.join(map(str, v))}" for k, v in self.versions.items()]
        return (
            f"{self.name} ({self.bytes / 1e6:.1f} MB)\n"
            f"    needs     {' '.join(self.needed)}\n"
            f"    versions  {' '.join(newest)}\n"
            f"    rpath     {' '.join(self.paths) or '-'}\n"
            f"    licences  {' '.join(self.texts) or '-'}"
        )


def _is_elf(path: pathlib.Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read_library(path: pathlib.Path) -> Library:
    """Dependencies, search paths and newest needed symbol versions of a file."""
    text = output(["readelf", "-dVW", path])
    if "Dynamic section" not in text:
        raise Failure(f"{path.name}: readelf shows no dynamic section")
    versions: dict[str, tuple[int, ...]] = {}
    for family, number in re.findall(r"Name: ([A-Z]+)_([\d.]+)\b", text):
        if family in NEWEST:
            version = tuple(map(int, number.split(".")))
            versions[family] = max(version, versions.get(family, ()))
    return Library(
        path.name,
        path.stat().st_size,
        re.findall(r"\(NEEDED\).*\[(.+)\]", text),
        [
            p
            for found in re.findall(r"PATH\).*\[(.*)\]", text)
            for p in found.split(":")
        ],
        versions,
    )


def faults(library: Library, inside: set[str]) -> list[str]:
    """What is wrong with a library of a wheel that has these libraries inside."""
    found = []
    for needed in library.needed:
        if needed == licences.OPTIONAL.get(library.name):
            continue
        if needed not in SYSTEM and needed not in inside:
            found.append(f"needs {needed}, which is neither inside nor the system's")
    for path in library.paths:
        if not re.fullmatch(r"\$ORIGIN(/lib)?", path):
            found.append(f"searches {path or 'an empty path'}")
    for family, version in library.versions.items():
        if version > NEWEST[family]:
            found.append(f"needs {family} {version}, stated are {NEWEST[family]}")
    if not library.texts:
        found.append("no licence is known for it (devtool/licences.py)")
    return [f"{library.name}: {fault}" for fault in found]


def _licence_faults(root: pathlib.Path) -> list[str]:
    texts = {p.name: p for p in root.glob("*.dist-info/licenses/**/*") if p.is_file()}
    found = []
    for name, phrase in licences.PHRASES.items():
        if name not in texts:
            found.append(f"licence text {name} is not in the wheel")
        elif phrase not in texts[name].read_text(encoding="utf-8"):
            found.append(f"licence text {name} does not mention {phrase!r}")
    return found


def audit(wheel: pathlib.Path) -> tuple[list[Library], list[str]]:
    """The libraries of a wheel, and what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(root)
        paths = sorted(p for p in root.rglob("*") if p.is_file() and _is_elf(p))
        libraries = [read_library(path) for path in paths]
        wrong = _licence_faults(root)
    inside = {library.name for library in libraries}
    for library in libraries:
        known = library.name.partition(".cpython-")[0]
        library.texts = list(licences.LIBRARIES.get(known, ()))
        wrong += faults(library, inside)
    wanted = {n for n in licences.LIBRARIES if licences.ONLY.get(n, "") in wheel.name}
    there = {n.partition(".cpython-")[0] for n in inside}
    missing = wanted - there - licences.OPTIONAL.keys()
    wrong += [f"{name} is not in the wheel" for name in sorted(missing)]
    return libraries, wrong


def report(wheel: pathlib.Path) -> bool:
    """Prints a wheel's libraries and faults; true where there is no fault."""
    libraries, wrong = audit(wheel)
    for library in libraries:
        print(library.line())
    for fault in wrong:
        print(f"FAULT: {fault}")
    print(f"{wheel.name}: {len(libraries)} libraries, {len(wrong)} faults", flush=True)
    return not wrong


if __name__ == "__main__":
    sys.exit(not report(pathlib.Path(sys.argv[1])))
