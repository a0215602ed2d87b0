"""Where the program took memory, as an out-of-memory error says it."""

from __future__ import annotations

import itertools
import linecache
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _expression(code: CodeType, offset: int) -> tuple[int, str]:
    """The line of an instruction, and the expression that it computes."""
    found = next(itertools.islice(code.co_positions(), offset // 2, None))
    line, last, begin, end = found
    if line is None:
        return code.co_firstlineno, ""
    text = linecache.getline(code.co_filename, line)
    if last != line or begin is None or end is None:
        return line, text.strip()
    return line, text.encode()[begin:end].decode(errors="replace")


def describe(frames: list[tuple[CodeType, int]]) -> str:
    """One line: the program's line, the operator that it called there, the modules.

    Args:
        frames: code and offset of its instruction, innermost first.
    """
    if not frames:
        return "nowhere in Python"
    own = itertools.takewhile(lambda f: f[0].co_filename.startswith(_OWN), frames)
    depth = sum(1 for _ in own)
    code, offset = frames[min(depth, len(frames) - 1)]
    line, text = _expression(code, offset)
    said = f"{code.co_filename}:{line} in {code.co_qualname}"
    said += f": {text}" if text else ""
    if depth > 0:
        inner = _expression(*frames[0])[1].split("(")[0].rpartition(".")[2]
        said += f"; operator {inner or frames[0][0].co_name}"
    classes = [
        code.co_qualname.removesuffix(".forward").rpartition(".")[2]
        for code, _ in reversed(frames)
        if code.co_name == "forward" and "." in code.co_qualname
    ]
    return said + (f"; in modules {' > '.join(classes)}" if classes else "")
