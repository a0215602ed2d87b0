"""Compiles and links C++ sources against Taeda's headers and library."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Build", "home", "pybind11_include"]

HEADERS = "csrc/extension/torch_headers"


def home() -> Path:
    """The folder with `include` and `lib`: of the package, or of the build tree."""
    from taeda import _C

    return Path(_C.__file__).resolve().parent


def include_folders() -> list[str]:
    root = home() / "include"
    return [str(root), str(root / "taeda" / HEADERS)]


def pybind11_include() -> str:
    """The folder of pybind11's headers.

    Raises:
        RuntimeError: the package is not installed.
    """
    try:
        import pybind11
    except ImportError:
        raise RuntimeError(
            "C++ extensions that Python imports need the headers of pybind11: "
            "pip install pybind11"
        ) from None
    return pybind11.get_include()


def jobs() -> int:
    """How many compilers run at a time: MAX_JOBS, or one for each core."""
    return int(os.environ.get("MAX_JOBS") or len(os.sched_getaffinity(0)))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a folder; the system lets go of a dead one's."""
    import fcntl

    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass
class Build:
    """A shared library or a program of some sources, in a folder of its own.

    What is there already is kept: an object whose command is the same and which is
    newer than all files that it was made of.
    """

    name: str
    sources: Sequence[str]
    folder: Path
    cxx: str
    cflags: list[str] = field(default_factory=list)
    ldflags: list[str] = field(default_factory=list)
    program: bool = False
    verbose: bool = False

    @property
    def target(self) -> Path:
        return self.folder / (self.name if self.program else f"{self.name}.so")

    def run(self) -> Path:
        """Brings the target up to date; its path.

        Raises:
            RuntimeError: compiler or linker failed; the text is what they said.
        """
        from concurrent.futures import ThreadPoolExecutor

        with locked(self.folder):
            with ThreadPoolExecutor(jobs()) as pool:
                objects = list(pool.map(self._compile, self.sources, self._objects()))
            kind = [] if self.program else ["-shared"]
            command = [self.cxx, *kind, *map(str, objects), *self.ldflags]
            self._make(command, self.target, objects)
        return self.target

    def _objects(self) -> list[Path]:
        names = [Path(source).stem for source in self.sources]
        return [
            self.folder / (f"{name}.o" if names.count(name) == 1 else f"{name}_{i}.o")
            for i, name in enumerate(names)
        ]

    def _compile(self, source: str, target: Path) -> Path:
        depends = target.with_suffix(".d")
        command = [self.cxx, *self.cflags, "-MMD", "-MF", str(depends), "-c", source]
        self._make(command, target, _read_depends(depends))
        return target

    def _make(self, command: list[str], target: Path, depends) -> None:
        command = [*shlex.split(command[0]), *command[1:], "-o", str(target)]
        text = shlex.join(command)
        record = target.with_name(target.name + ".command")
        if _is_fresh(target, record, text, depends):
            return
        record.unlink(missing_ok=True)
        if self.verbose:
            print(text, flush=True)
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"Error building extension {self.name!r}: {text}\n{done.stdout}"
            )
        if self.verbose and done.stdout:
            print(done.stdout, flush=True)
        record.write_text(text)


def _read_depends(path: Path) -> list[Path] | None:
    """The files of a make rule as compilers write it; None where there is none."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    files = text.replace("\\\n", " ").partition(":")[2]
    return [Path(word) for word in shlex.split(files)]


def _is_fresh(target: Path, record: Path, command: str, depends) -> bool:
    if depends is None or not target.exists() or not record.exists():
        return False
    if record.read_text() != command:
        return False
    made = target.stat().st_mtime_ns
    try:
        return all(path.stat().st_mtime_ns <= made for path in depends)
    except FileNotFoundError:
        return False
