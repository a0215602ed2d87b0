"""Docstrings as Markdown.

They are plain text with sections (`Args:`, `Returns:`, `Example:`) whose lines are
indented, and with names in single backticks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

SECTION = re.compile(r"([A-Z]\w*(?: \w+)?):$")
ITEM = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*(?: \([^)]*\))?): (.*)$")
NAME = re.compile(r"`(taeda(?:\.\w+)+)(?:\(\))?`")
SPECIAL = re.compile(r"([\\*_<>\[\]#|])")


def escape(text: str) -> str:
    """Text that Markdown would change, shown as it is; code in backticks stays."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        p if p.startswith("`") and p.endswith("`") and len(p) > 1 else _plain(p)
        for p in parts
    )


def _plain(text: str) -> str:
    shown = SPECIAL.sub(r"\\\1", text).replace("&", "&amp;")
    shown = shown.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("`", "\\`")
    # A paragraph that begins like a list is not one.
    return re.sub(r"^(\d*)([-+.)]\s)", r"\1\\\2", shown)


def fence(text: str, language: str) -> str:
    """A block of code."""
    marks = "```" if "```" not in text else "~~~~"
    return f"{marks}{language}\n{text.rstrip()}\n{marks}"


def from_docstring(text: str, link: Callable[[str], str | None]) -> str:
    """Markdown of a docstring.

    Args:
        text: as the object has it, indented or not.
        link: the address of a public name, or None.
    """
    lines = inspect.cleandoc(text).splitlines()
    blocks = []
    while lines:
        if not lines[0].strip():
            lines.pop(0)
        elif (found := SECTION.match(lines[0])) and _indented(lines[1:2]):
            lines.pop(0)
            body = _take(lines, lambda line: not line.strip() or line[0] == " ")
            blocks.append(_section(found.group(1), inspect.cleandoc("\n".join(body))))
        elif lines[0].startswith(">>>") or lines[0][0] == " ":
            code = _take(lines, lambda line: bool(line.strip()))
            blocks.append(fence(inspect.cleandoc("\n".join(code)), "python"))
        else:
            words = _take(lines, lambda line: bool(line.strip()) and line[0] != " ")
            blocks.append("\n".join(escape(line) for line in words))
    return linked("\n\n".join(blocks), link)


def linked(text: str, link: Callable[[str], str | None]) -> str:
    """Links for the names of this library in backticks."""

    def replace(found: re.Match) -> str:
        address = link(found.group(1))
        return f"[`{found.group(1)}`]({address})" if address else found.group(0)

    return NAME.sub(replace, text)


def _indented(lines: list[str]) -> bool:
    return bool(lines) and lines[0].startswith(" ")


def _take(lines: list[str], wanted: Callable[[str], bool]) -> list[str]:
    taken = [lines.pop(0)]
    while lines and wanted(lines[0]):
        taken.append(lines.pop(0))
    return taken


def _section(title: str, body: str) -> str:
    if ">>>" in body:
        return f"**{title}**\n\n{fence(body, 'python')}"
    items: list[str] = []
    for line in body.splitlines():
        if found := ITEM.match(line):
            items.append(f"- `{found.group(1)}`: {escape(found.group(2))}")
        elif items and (line.startswith(" ") or not line.strip()):
            items[-1] += f" {escape(line.strip())}" if line.strip() else ""
        else:
            items.append(f"- {escape(line)}" if line.strip() else "")
    return f"**{title}**\n\n" + "\n".join(items)
