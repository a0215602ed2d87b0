"""Instruction counts by valgrind's callgrind."""

from __future__ import annotations

import enum
import os
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any, NamedTuple

from .common import TaskSpec

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]


class FunctionCount(NamedTuple):
    """Instructions of a function, "file:name [library]"."""

    count: int
    function: str


@dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Instructions of functions, largest first. They can be added, subtracted and
    multiplied by a number.

    Args:
        inclusive: whether instructions of what a function called count as its own.
        truncate_rows: whether `repr` leaves the middle out.
    """

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item):
        found = self._data[item]
        if isinstance(item, slice):
            return FunctionCounts(found, self.inclusive, truncate_rows=False)
        return found

    def __repr__(self) -> str:
        # PyTorch gives a negative number one column more than its digits and sign.
        numbers = [f"{count}" for count, _ in self]
        width = max((len(n) + n.startswith("-") for n in numbers), default=0)
        room = max((self._linewidth or 80) - width - 4, 40)
        rows = [
            f"  {number:>{width}}  {_shortened(name, room)}"
            for number, (_, name) in zip(numbers, self, strict=True)
        ]
        if self.truncate_rows and len(rows) > 2 * _SHOWN:
            rows[_SHOWN:-_SHOWN] = ["...".rjust(width + 2)]
        total = () if self.inclusive else ("", f"Total: {self.sum()}")
        return "\n".join((object.__repr__(self), *rows, *total))

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._with(other._weighted(1))

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._with(other._weighted(-1))

    def __mul__(self, other: float) -> FunctionCounts:
        return self._weighted(other)

    def _weighted(self, factor: float) -> FunctionCounts:
        """The same items, each count times a factor and cut to an integer."""
        items = tuple(item._replace(count=int(item.count * factor)) for item in self)
        return _gathered(self.inclusive, items)

    def _with(self, other: FunctionCounts) -> FunctionCounts:
        if self.inclusive is not other.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        return _gathered(self.inclusive, self, other)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """The same under other names; counts of equal names are added."""
        return _gathered(self.inclusive, ((n, map_fn(name)) for n, name in self))

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Those whose name the function is true of."""
        chosen = [bool(filter_fn(name)) for _, name in self]
        return FunctionCounts(tuple(compress(self, chosen)), self.inclusive)

    def sum(self) -> int:
        """The count of all functions together."""
        numbers, _ = zip(*self, strict=True) if self._data else ((), ())
        return sum(numbers)

    def denoise(self) -> FunctionCounts:
        """Without the interpreter's dict look-ups, which vary with hashes."""
        return self.filter(lambda name: _NOISE not in name)


_SHOWN = 9  # rows at either end of a long list
_NOISE = "dictobject.c:lookdict_unicode"


def _gathered(inclusive: bool, *parts: Iterable[tuple[int, str]]) -> FunctionCounts:
    """All parts in one: equal names are added, zeros left out."""
    by_name: Counter[str] = Counter()
    for number, name in chain(*parts):
        by_name[name] += number
    items = [FunctionCount(number, name) for name, number in by_name.items() if number]
    items.sort(reverse=True)
    return FunctionCounts(tuple(items), inclusive)


def _shortened(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    gap = " ... "
    head, odd = divmod(room - len(gap), 2)
    return text[:head] + gap + text[-(head + odd) :]


@dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """What `Timer.collect_callgrind` counted, for the statement and for `pass`."""

    task_spec: TaskSpec
    number_per_run: int  # calls in a run
    built_with_debug_symbols: bool  # of the interpreter
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts  # with what it calls
    stmt_exclusive_stats: FunctionCounts  # by itself
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        def row(name: str, counts: FunctionCounts) -> str:
            whole, quiet = counts.sum(), counts.denoise().sum()
            return f"    {name:<14}{whole:>12}{quiet:>27}"

        many = "" if self.task_spec.num_threads == 1 else "s"
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            " " * 27 + "All" + " " * 10 + "Noisy symbols removed",
            row("Instructions:", self.stmt_exclusive_stats),
            row("Baseline:", self.baseline_exclusive_stats),
            f"{self.number_per_run} runs per measurement, "
            f"{self.task_spec.num_threads} thread{many}",
        ]
        if not self.built_with_debug_symbols:
            lines.append("Without debug symbols of Taeda: functions have no files.")
        return "\n".join(lines)

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """Counts of the statement's functions."""
        kind = "inclusive" if inclusive else "exclusive"
        return getattr(self, f"stmt_{kind}_stats")

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions of the statement."""
        found = self.stats()
        return found.denoise().sum() if denoise else found.sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """These counts less those of another one."""
        mine, theirs = (each.stats(inclusive) for each in (self, other))
        return mine - theirs

    def as_standardized(self) -> CallgrindStats:
        """The same without folders of build machines and names of libraries, which
        make equal functions of two builds differ. The kept file is left out."""
        plain = {
            name: value.transform(_without_places)
            for name, value in vars(self).items()
            if isinstance(value, FunctionCounts)
        }
        return replace(self, stmt_callgrind_out=None, **plain)


def _without_places(name: str) -> str:
    """The name less its library, and less what comes before a source folder."""
    name = re.sub(r"\s\[.+\]$", "", name)
    return re.sub(r"^.+/(?=build/|Python/|Objects/)", "", name)


def _has_debug_symbols(library: Path) -> bool:
    """Whether an ELF file of 64 bits has the section `.debug_info`. The offsets are
    those of the System V ABI: of the section table, its entries, and their names."""
    with open(library, "rb") as file:
        header = file.read(64)
        if header[:5] != b"\x7fELF\x02":
            return False
        (table,) = struct.unpack_from("<Q", header, 40)
        size, _, names = struct.unpack_from("<3H", header, 58)
        file.seek(table + size * names)
        offset, length = struct.unpack_from("<2Q", file.read(size), 24)
        file.seek(offset)
        return b"\0.debug_info\0" in b"\0" + file.read(length)


class Serialization(enum.Enum):
    """How a global gets to the process that counts."""

    PICKLE = 0
    TORCH = 1


class CopyIfCallgrind:
    """Says that a global may be a copy where instructions are counted.

    Args:
        value: a str, bytes, bool, int, float or complex, or a Module.
        setup: statements that the copy needs first, such as imports.

    Raises:
        ValueError: another type.
    """

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        from taeda.nn import Module

        plain = isinstance(value, (str, bytes, bool, int, float, complex))
        if not plain and not isinstance(value, Module):
            raise ValueError(
                f"Unsupported type: {type(value)}; str, bytes, bool, int, float, "
                "complex and Module can be copied"
            )
        self._value, self._setup = value, setup
        self._serialization = Serialization.PICKLE if plain else Serialization.TORCH

    @property
    def value(self) -> Any:
        return self._value

    @property
    def setup(self) -> str | None:
        return self._setup

    @property
    def serialization(self) -> Serialization:
        """How the value is copied: by `pickle` or by `taeda.save`."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals: dict[str, Any]) -> dict[str, Any]:
        """The globals with the values in place of these."""
        return {
            name: v.value if isinstance(v, CopyIfCallgrind) else v
            for name, v in globals.items()
        }


# Counting is on inside of one function of the interpreter, that of `a @= b`, which
# hardly any statement calls. Valgrind's own requests would need native code.
_SWITCH = "PyNumber_InPlaceMatrixMultiply"
_WORKER = """\
import pickle, sys
folder, number, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
task = pickle.load(open(folder + "/task", "rb"))
sys.path[:] = task["path"]
space = {}
for name, setup, kind, path in pickle.load(open(folder + "/globals", "rb")):
    exec(setup or "", space)
    if kind == "TORCH":
        import taeda
        space[name] = taeda.load(path, weights_only=False)
    else:
        space[name] = pickle.load(open(path, "rb"))
exec(task["setup"], space)
if "taeda" in sys.modules:
    sys.modules["taeda"].set_num_threads(threads)
lines = task["stmt"].splitlines() or ["pass"]
body = "".join("        " + line + "\\n" for line in lines)
text = "def run(number):\\n    for _ in range(number):\\n" + body
exec(text, space)
space["run"](max(number // 10, 2))
class Counted:
    def __imatmul__(self, number):
        space["run"](number)
        return self
counted = Counted()
counted @= number
"""


def collect(
    spec: TaskSpec, names: dict, number: int, repeats: int, *, baseline: bool, retain
) -> tuple[CallgrindStats, ...]:
    """Counts of the statement, and of `pass` in its place, each in its process."""
    import shutil
    from tempfile import TemporaryDirectory

    from taeda.utils.cpp_extension import library_paths

    if shutil.which("valgrind") is None:
        raise OSError("Timer.collect_callgrind needs the program valgrind")
    with TemporaryDirectory() as folder:
        _write_globals(Path(folder), names)
        nothing = (_gathered(True), _gathered(False))
        library = Path(library_paths()[0], "libtaeda.so")
        files = (library, library.with_name("libtaeda.so.debug"))
        symbols = any(_has_debug_symbols(f) for f in files if f.exists())
        base = _run(folder, spec, "pass", number)[:2] if baseline else nothing
        made = []
        for i in range(repeats):
            inclusive, exclusive, text = _run(folder, spec, spec.stmt, number)
            kept = _kept(text, i) if retain else None
            stats = (*base, inclusive, exclusive)
            made.append(CallgrindStats(spec, number, symbols, *stats, kept))
    return tuple(made)


def _kept(text: str, index: int) -> str:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(
        "w", prefix=f"callgrind.out.{index}.", delete=False
    ) as file:
        file.write(text)
    return file.name


def _write_globals(folder: Path, names: dict) -> None:
    import pickle

    import taeda

    entries = []
    for i, (name, value) in enumerate(names.items()):
        if not isinstance(value, CopyIfCallgrind):
            value = CopyIfCallgrind(value)
        path = folder / f"value{i}"
        if value.serialization is Serialization.TORCH:
            taeda.save(value.value, path)
        else:
            path.write_bytes(pickle.dumps(value.value))
        entries.append((name, value.setup, value.serialization.name, str(path)))
    (folder / "globals").write_bytes(pickle.dumps(entries))


def _run(folder: str, spec: TaskSpec, stmt: str, number: int):
    """(inclusive counts, exclusive counts, callgrind's text) of a statement."""
    import pickle
    import subprocess

    task, out = Path(folder, "task"), Path(folder, "out")
    said = {"setup": spec.setup, "stmt": stmt, "path": sys.path}
    task.write_bytes(pickle.dumps(said))
    worker = Path(folder, "worker.py")
    worker.write_text(_WORKER)
    command = [
        *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
        *("--collect-atstart=no", f"--toggle-collect={_SWITCH}", "--dump-line=no"),
        *(sys.executable, str(worker), folder, str(number), str(spec.num_threads)),
    ]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"Failed to collect callgrind profile:\n{done.stderr[-4000:]}")
    text = out.read_text()
    if "totals: 0" in text:
        raise OSError(f"valgrind does not see the interpreter's {_SWITCH}")
    own, calls = read_callgrind(text.splitlines())
    return _gathered(True, own, calls), _gathered(False, own), text


def read_callgrind(lines) -> tuple[list[FunctionCount], list[FunctionCount]]:
    """Instructions of functions themselves, and of what they called, of a file in
    callgrind's format (Valgrind's manual, "Callgrind Format Specification")."""
    own: list[FunctionCount] = []
    calls: list[FunctionCount] = []
    tables: dict[str, dict[str, str]] = {"f": {}, "o": {}, "n": {}}
    place = {"f": "???", "o": ""}
    function, is_call = "", False
    for line in lines:
        key, mark, value = line.partition("=")
        kind = {"fl": "f", "fi": "f", "fe": "f", "ob": "o", "fn": "n"}.get(key)
        kind = kind or {"cfi": "f", "cfl": "f", "cob": "o", "cfn": "n"}.get(key)
        if mark and kind:
            name = _named(tables[kind], value)
            if key == "fn":
                library = f" [{place['o']}]" if place["o"] else ""
                function = f"{place['f']}:{name}{library}"
            elif key in ("fl", "ob"):
                place[kind] = name
        elif mark and key == "calls":
            is_call = True
        elif function and line[:1] in "0123456789+-*":
            words = line.split()
            if words and len(words) > 1:
                item = FunctionCount(int(words[1]), function)
                (calls if is_call else own).append(item)
            is_call = False
    return own, calls


def _named(table: dict[str, str], value: str) -> str:
    """A name of a file, which is written out where it comes first: "(3) name"."""
    number, _, name = value.partition(" ")
    if not number.startswith("("):
        return value
    return table.setdefault(number, name) if name else table[number]
