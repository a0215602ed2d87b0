#!/usr/bin/env python3
"""Lines per file and per function.

Files: 400 (warning), 800 (error), operator records included. Functions: 40 and 80,
docstrings, comment lines and Python signatures not counted.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from tree import CPP, ROOT, files, report

FILE_SOFT, FILE_HARD = 400, 800
FUNCTION_SOFT, FUNCTION_HARD = 40, 80
COUNTED = (*CPP, ".py", ".pyi", ".yaml", ".cmake", ".txt")

# Comments, string and character literals: blanked, since braces may stand in them.
NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.S,
)
# `a_{x}` in a constructor's list of initializers is not a body.
MEMBER_INIT = re.compile(r"([\w>])\{([^{};]*)\}(?=\s*[,{])")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
CALLED = re.compile(r"([~\w:]+(?:\s*(?:[^\w\s(]+))?)\s*\(")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group(0))


def _is_function(head: str) -> bool:
    """Whether the text before a brace at namespace or class scope opens a body."""
    head = re.sub(r"template\s*<[^{}]*?>\s*(?=[\w\[])", "", head)
    before_parenthesis = head.split("(")[0]
    if "(" not in head or SCOPE.search(before_parenthesis):
        return False
    return not re.search(r"=\s*$", head)


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, code lines) of each function body at any class depth."""
    clean = re.sub(
        r"^[ \t]*#(?:\\\n|[^\n])*", _blank, NOISE.sub(_blank, text), flags=re.M
    )
    clean = MEMBER_INIT.sub(r"\1(\2)", clean)
    depth_in_function = 0
    start = head_start = 0
    name = ""
    for match in re.finditer(r"[{};]", clean):
        mark, at = match.group(0), match.start()
        if depth_in_function:
            depth_in_function += {"{": 1, "}": -1, ";": 0}[mark]
            if not depth_in_function:
                body = clean[start : at + 1].splitlines()
                yield (
                    name,
                    clean.count("\n", 0, start) + 1,
                    sum(bool(line.strip()) for line in body),
                )
                head_start = at + 1
            continue
        head = clean[head_start:at]
        if mark == "{" and _is_function(head):
            depth_in_function = 1
            start = head_start + len(head) - len(head.lstrip())
            called = CALLED.search(head)
            name = called.group(1).strip() if called else "?"
        head_start = at + 1


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, lines of the body without docstring and comments).

    The public API fixes many a long signature, so signatures do not count.
    """
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.lineno
        begin = node.body[0].lineno
        span = set(range(begin, (node.end_lineno or begin) + 1))
        if ast.get_docstring(node) is not None:
            quoted = node.body[0]
            span -= set(range(quoted.lineno, (quoted.end_lineno or 0) + 1))
        code = (lines[number - 1].strip() for number in span)
        yield node.name, first, sum(bool(c) and c[0] != "#" for c in code)


def main() -> int:
    """Checks every file; 1 when one is over a hard limit."""
    errors: list[str] = []
    warnings: list[str] = []
    for path in files(*COUNTED):
        text = (ROOT / path).read_text()
        lines = text.count("\n")
        if lines > FILE_SOFT:
            hard = lines > FILE_HARD
            (errors if hard else warnings).append(f"{path}:1: {lines} lines")
        found: Iterator[tuple[str, int, int]] = iter(())
        if path.suffix in CPP:
            found = cpp_functions(text)
        elif path.suffix == ".py":
            found = python_functions(text)
        for name, first, size in found:
            if size > FUNCTION_SOFT:
                hard = size > FUNCTION_HARD
                (errors if hard else warnings).append(
                    f"{path}:{first}: {name} has {size} lines"
                )
    return report("sizes", errors, warnings)


if __name__ == "__main__":
    sys.exit(main())
