"""Which modules a source imports."""

from __future__ import annotations

import ast

__all__ = ["find_files_source_depends_on"]


def find_files_source_depends_on(
    src: str, package: str
) -> list[tuple[str, str | None]]:
    """(module, name taken from it or None) of every import in a source.

    Args:
        src: Python's source. package: in which relative imports begin.

    Raises:
        SyntaxError: the source is none. ImportError: a relative import leaves it.
    """
    found: dict[tuple[str, str | None], None] = {}
    for node in ast.walk(ast.parse(src)):
        if isinstance(node, ast.Import):
            found.update({(alias.name, None): None for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            taken = [alias.name for alias in node.names]
            found.update(_taken(node.module or "", taken, node.level, package))
        elif isinstance(node, ast.Call):
            found.update(_called(node, package))
    return list(found)


def _taken(module: str, taken: list, level: int, package: str) -> dict:
    """What `from module import taken` needs."""
    if level:
        module = _absolute(module, package, level)
    taken = [name if name not in ("", "*") else None for name in taken]
    return dict.fromkeys((module, name) for name in taken or [None])


def _absolute(module: str, package: str, level: int) -> str:
    parts = package.split(".")
    if not package or level > len(parts):
        raise ImportError("attempted relative import beyond top-level package")
    base = ".".join(parts[: len(parts) - level + 1])
    return f"{base}.{module}" if module else base


_ARGUMENTS = ("name", "globals", "locals", "fromlist", "level")


def _called(node: ast.Call, package: str) -> dict:
    """What `__import__("name", ...)` needs, as far as its arguments are constants."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "__import__"):
        return {}
    given = dict(zip(_ARGUMENTS, node.args, strict=False))
    given |= {word.arg: word.value for word in node.keywords if word.arg}
    values = {}
    for name in ("name", "fromlist", "level"):
        try:
            values[name] = ast.literal_eval(given[name])
        except (KeyError, ValueError):
            continue
    if not isinstance(values.get("name"), str):
        return {}
    taken = list(values.get("fromlist") or ())
    return _taken(values["name"], taken, values.get("level") or 0, package)
