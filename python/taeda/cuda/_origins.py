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


def _modules(frames: list[tuple[CodeType, int, int]]) -> list[object]:
    """Modules of calls on the stack that are still alive, the outermost first."""
    import gc

    from taeda.nn import Module

    # The frame inside of a module's call is its forward: addresses are used again.
    inside = zip(frames, frames[1:], strict=False)
    wanted = {call[2]: code for (code, *_), call in inside if call[2]}
    alive = {}
    for found in gc.get_objects():
        code = wanted.get(id(found))
        if code is None or not isinstance(found, Module):
            continue
        if getattr(type(found).forward, "__code__", None) is code:
            alive[id(found)] = found
    return [alive[i] for _, _, i in reversed(frames) if i in alive]


def _path(frames: list[tuple[CodeType, int, int]]) -> str:
    """The innermost module's name within the outermost, "Net.encoder.0 (Linear)"."""
    modules = _modules(frames)
    if not modules:
        return ""
    root, inner = modules[0], modules[-1]
    name = next((n for n, m in root.named_modules() if m is inner), None)
    kind = type(inner).__name__
    if name is None:
        return kind
    return f"{type(root).__name__}.{name} ({kind})" if name else kind


def describe(frames: list[tuple[CodeType, int, int]]) -> str:
    """One line: the program's line, the operator that it called there, the module.

    Args:
        frames: code, offset of its instruction, and the address of the module that it
            calls or 0; innermost first.
    """
    if not frames:
        return "nowhere in Python"
    own = itertools.takewhile(lambda f: f[0].co_filename.startswith(_OWN), frames)
    depth = sum(1 for _ in own)
    code, offset, _ = frames[min(depth, len(frames) - 1)]
    line, text = _expression(code, offset)
    said = f"{code.co_filename}:{line} in {code.co_qualname}"
    said += f": {text}" if text else ""
    if depth > 0:
        inner = _expression(*frames[0][:2])[1].split("(")[0].rpartition(".")[2]
        said += f"; operator {inner or frames[0][0].co_name}"
    if path := _path(frames):
        return f"{said}; in module {path}"
    classes = [
        code.co_qualname.removesuffix(".forward").rpartition(".")[2]
        for code, *_ in reversed(frames)
        if code.co_name == "forward" and "." in code.co_qualname
    ]
    return said + (f"; in modules {' > '.join(classes)}" if classes else "")
