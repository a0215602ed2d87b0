"""What PyTorch has and this library does not: the README's table and a page.

    python -m docsite.coverage

It reads the PyTorch that the tests compare with, asks this library for each of its
public names, and writes the table between the two marks of the README and all of them
to docs/not_there_yet.md. Names are those of `__all__` of modules up to two levels deep,
and what `Tensor` has.
"""

from __future__ import annotations

import importlib
import logging
import os
import pathlib
import pkgutil
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "<!-- not there yet: tools/dev docs --coverage -->"
DEPTH = 2
# The README shows so many namespaces, and so many names of each.
ROWS, SHOWN = 10, 3


def _modules(package: types.ModuleType, depth: int) -> Iterator[types.ModuleType]:
    yield package
    if not depth:
        return
    for info in pkgutil.iter_modules(getattr(package, "__path__", [])):
        if info.name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"{package.__name__}.{info.name}")
        except Exception:  # what the other library cannot load here has no names
            continue
        yield from _modules(module, depth - 1)


def _is_there(module: str, name: str) -> bool:
    """Whether our module has a name, and more than a placeholder that refuses."""
    from taeda._compat import entries

    ours = "taeda" + module[len("torch") :]
    try:
        found = importlib.import_module(ours)
    except ImportError:
        return False
    return hasattr(found, name) and name not in entries(ours)


def names() -> dict[str, list[str]]:
    """Namespace ("torch.nn") to the full public names below it."""
    import torch

    found: dict[str, list[str]] = {}
    for module in _modules(torch, DEPTH):
        space = ".".join(module.__name__.split(".")[:2])
        listed = found.setdefault(space, [])
        for name in getattr(module, "__all__", ()):
            if not name.startswith("_"):
                listed.append(f"{module.__name__}:{name}")
    found["torch.Tensor"] = [
        f"torch.Tensor:{name}" for name in dir(torch.Tensor) if name[0] != "_"
    ]
    return {space: listed for space, listed in found.items() if listed}


def compare() -> dict[str, tuple[int, list[str]]]:
    """Namespace to how many names PyTorch has there, and those that are missing."""
    import taeda

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable()
        found = {}
        for space, listed in names().items():
            missing = []
            for full in listed:
                module, _, name = full.partition(":")
                if module == "torch.Tensor":
                    there = hasattr(taeda.Tensor, name)
                else:
                    there = _is_there(module, name)
                if not there:
                    missing.append(full.replace(":", "."))
            found[space] = len(listed), missing
        logging.disable(logging.NOTSET)
    return found


def table(found: dict[str, tuple[int, list[str]]]) -> str:
    """The README's table: where most names are missing."""
    total = sum(count for count, _ in found.values())
    there = total - sum(len(missing) for _, missing in found.values())
    rows = [(count, missing, space) for space, (count, missing) in found.items()]
    rows = sorted((r for r in rows if r[1]), key=lambda r: (-len(r[1]), r[2]))
    lines = [
        f"Of PyTorch 2.13's {total} public names {there} are there"
        f" ({100 * there // total} %); {len(found) - len(rows)} of its {len(found)}",
        "namespaces are whole. Most is missing of:",
        "",
        "| namespace | there | missing, for example |",
        "|---|---|---|",
    ]
    for count, missing, space in rows[:ROWS]:
        some = [name.removeprefix(f"{space}.") for name in missing[:SHOWN]]
        shown = ", ".join(f"`{name}`" for name in some)
        lines.append(f"| `{space}` | {count - len(missing)} of {count} | {shown} |")
    return "\n".join(lines)


def listing(found: dict[str, tuple[int, list[str]]]) -> str:
    """The page of all missing names."""
    lines = [
        "# Not there yet",
        "",
        "Public names of PyTorch 2.13 that this library does not have. `hasattr` says",
        "so, importing one raises ImportError; the few that exist to be imported, and",
        "refuse, are in [placeholders](placeholders.md). Written by",
        "`tools/dev docs --coverage`.",
    ]
    for space, (count, missing) in sorted(found.items()):
        if missing:
            lines += ["", f"## {space}: {count - len(missing)} of {count}", ""]
            names = ", ".join(f"`{n.removeprefix(f'{space}.')}`" for n in missing)
            lines += textwrap.wrap(names, 88, break_on_hyphens=False)
    return "\n".join([*lines, ""])


def readme_with(text: str) -> str:
    """The README with another table."""
    before, _, rest = (ROOT / "README.md").read_text().partition(MARK)
    _, _, after = rest.partition(MARK)
    return f"{before}{MARK}\n\n{text}\n\n{MARK}{after}"


def main() -> int:
    """Brings the README and the page of missing names up to date."""
    found = compare()
    (ROOT / "README.md").write_text(readme_with(table(found)))
    (ROOT / "docs" / "not_there_yet.md").write_text(listing(found))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # without what two libraries do when a process ends
